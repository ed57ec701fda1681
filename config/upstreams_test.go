package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/config"
)

// Two entries of one engine are a fault however its URL is written, and so is a URL that is of no
// server. Faults name the row and, of two entries, both.
func TestFaultsOfUpstreams(t *testing.T) {
	const gateway = "mode: gateway, engines: "
	for name, test := range map[string]struct {
		rows []string // of upstreams
		want []string
	}{
		"the same URL": {[]string{"{url: http://h:1}", "{url: http://g:1}", "{url: http://h:1}"},
			[]string{"f.yaml:4: upstreams[2].url: http://h:1 is listed twice, first as " +
				"http://h:1 in upstreams[0]; remove one"}},
		"with and without /v1": {[]string{"{url: http://h:1}", "{url: http://h:1/v1}",
			"{url: http://h:1/v1/}"}, []string{
			"f.yaml:3: upstreams[1].url: http://h:1/v1 is listed twice, first as http://h:1 in " +
				"upstreams[0]; remove one",
			"f.yaml:4: upstreams[2].url: http://h:1/v1/ is listed twice, first as http://h:1 in " +
				"upstreams[0]; remove one",
		}},
		"capitals, default port and password": {[]string{"{url: 'http://Host/a'}",
			"{url: 'http://me:secret@host:80/a/'}"}, []string{
			"f.yaml:3: upstreams[1].url: http://hidden@host:80/a/ is listed twice, first as " +
				"http://Host/a in upstreams[0]; remove one"}},
		"IPv6": {[]string{"{url: 'http://[FD00::1]:8000'}", "{url: 'http://[fd00::1]:8000'}"},
			[]string{"f.yaml:3: upstreams[1].url: http://[fd00::1]:8000 is listed twice, first " +
				"as http://[FD00::1]:8000 in upstreams[0]; remove one"}},
		"under two names": {[]string{"{url: http://h:1, name: a}", "{url: http://h:1, name: b}"},
			[]string{"f.yaml:3: upstreams[1].url: http://h:1 is listed twice, first as " +
				"http://h:1 in upstreams[0]; remove one"}},
		"a gateway without names": {[]string{"{url: http://h:1, " + gateway + "['http://a/m']}",
			"{url: http://h:1/v1, " + gateway + "['http://b/m']}"}, []string{
			"f.yaml:3: upstreams[1].url: http://h:1/v1 is listed twice, first as http://h:1 in " +
				"upstreams[0]; remove one, or give each a name if they lead to different engines"}},
		"a gateway and an engine": {[]string{"{url: http://h:1, name: a, mode: gateway}",
			"{url: http://h:1, name: b}"}, []string{
			"f.yaml:3: upstreams[1].url: http://h:1 is listed twice, first as http://h:1 in " +
				"upstreams[0]; remove one"}},
		"an engine of a gateway": {[]string{"{url: http://h:1/v1}",
			"{url: http://g:1, " + gateway + "['http://a/metrics', 'http://H:1/metrics']}"},
			[]string{"f.yaml:3: upstreams[1].engines[1]: http://H:1/metrics is the metrics page " +
				"of upstreams[0] too, so the engine would get the lines of two; remove " +
				"upstreams[0], or the engine from this list if the gateway doesn't lead to it"}},
		"an engine of a gateway by its page": {[]string{"{url: http://h:1, metrics: 'http://m/x'}",
			"{url: http://g:1, " + gateway + "['http://h:1/metrics']}"}, nil},
		"a gateway by name": {[]string{
			"{url: http://h:1, name: a, " + gateway + "['http://a/m']}",
			"{url: http://h:1, name: b, " + gateway + "['http://b/m']}"}, nil},
		"other keys by name": {[]string{"{url: http://h:1, name: a, api_key_env: A}",
			"{url: http://h:1, name: b, api_key_env: B}"}, nil},
		"other models by name": {[]string{"{url: http://h:1, name: a, models: [m]}",
			"{url: http://h:1, name: b, models: [n]}"}, nil},
		"one name": {[]string{"{url: http://h:1, name: a}", "{url: http://h:2, name: a}"},
			[]string{`f.yaml:3: upstreams[1].name: upstreams[0] is named "a" too; give each ` +
				"upstream a name of its own"}},
		"one name by default": {[]string{"{url: http://h}", "{url: https://h}"},
			[]string{`f.yaml:3: upstreams[1].url: upstreams[0] is named "h" too; give each ` +
				"upstream a name of its own"}},
		"an endpoint": {[]string{"{url: http://h:1/v1/chat/completions}"}, []string{
			"f.yaml:2: upstreams[0].url: ends in /v1/chat/completions, an endpoint that lines " +
				"name; write the base, such as http://host:port"}},
		"a query": {[]string{"{url: 'http://h:1/v1?key=secret'}"}, []string{
			"f.yaml:2: upstreams[0].url: has a query or a fragment, which no request would " +
				"carry; write the base, such as http://host:port"}},
		"different ones": {[]string{"{url: http://h:1}", "{url: http://h:2}", "{url: http://h/a}",
			"{url: http://h/b}", "{url: 'https://h/c'}"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			file := "upstreams:\n"
			for _, row := range test.rows {
				file += "- " + row + "\n"
			}
			_, err := config.Parse("f.yaml", []byte(file))
			var got []string
			for _, fault := range config.Faults(err) {
				got = append(got, fault.Error())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}
