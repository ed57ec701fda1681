package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/api"
)

// ask sends a request as a browser's page would; header is pairs of names and values, Host among them.
func ask(t *testing.T, method, url, body string, header ...string) (status int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode
}

// Without keys, a page in a browser of this machine can neither read by a name of its own nor make anything.
func TestWebPagesCannotDriveAKeylessDaemon(t *testing.T) {
	d, _ := startDaemon(t, t.TempDir(), startRunner(t, nil))
	for _, test := range []struct {
		name, method, url string
		header            []string
		want              int
	}{
		{"files by a rebound name", "GET", d.url() + "/v1/files", []string{"Host", "evil.example.com"}, 421},
		{"profiles by a rebound name", "GET", d.adminURL() + "/debug/pprof/heap", []string{"Host", "evil.example.com:8081"}, 421},
		{"a profile as an image", "GET", d.adminURL() + "/debug/pprof/profile?seconds=60", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"a form", "POST", d.url() + "/v1/files", []string{"Origin", "https://evil.example.com", "Content-Type", "multipart/form-data; boundary=x"}, 403},
		{"text", "POST", d.url() + "/v1/batches", []string{"Content-Type", "text/plain"}, 415},
		{"a client", "GET", d.url() + "/v1/files", nil, 200},
		{"a probe", "GET", d.adminURL() + "/readyz", []string{"Host", "10.1.2.3:8081"}, 200},
	} {
		if got := ask(t, test.method, test.url, "{}", test.header...); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
	}
}

func TestHostsAreUncheckedWithKeys(t *testing.T) {
	keys, err := api.ParseKeys("secret")
	if err != nil {
		t.Fatal(err)
	}
	d, _ := startDaemonWith(t, t.TempDir(), keys, startRunner(t, nil))
	if got := ask(t, "GET", d.url()+"/v1/files", "", "Host", "tidefill.example.com", "Authorization", "Bearer secret"); got != 200 {
		t.Errorf("got %d", got)
	}
}
