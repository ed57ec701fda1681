package registry_test

import (
	"strings"
	"testing"
)

// A target that no runner could be made of is refused, and its URL is not shown.
func TestBaseURLs(t *testing.T) {
	for url, want := range map[string]string{
		"http://host:1":                     "",
		"https://host/gateway/rerank":       "",
		"host:1":                            "must be a URL",
		"http://me:TOPSECRET@host":          "must be a URL",
		"http://host?key=TOPSECRET":         "has a query or a fragment",
		"http://host#TOPSECRET":             "has a query or a fragment",
		"http://host/v1/rerank":             "ends in /v1/rerank",
		"http://host/chat/completions/":     "ends in /v1/chat/completions",
		"http://host/TOPSECRET%zz/a":        "must be a URL",
		"http://host\\u0000/v1/completions": "must be a URL",
	} {
		c := read(nil, template("{type: k8s, namespace: batch}=>{type: external, base_url: \""+url+
			"\"}", "dedicated=>external"))
		got := strings.Join(refused(c), "\n")
		if (want == "") != (got == "") || !strings.Contains(got, want) ||
			strings.Contains(got, "TOPSECRET") {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}
