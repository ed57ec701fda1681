package live

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestFrozenPrometheusRepeatsItsAnswers(t *testing.T) {
	answers := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answers++
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprintf(w, "%s %s %d", r.URL.Path, r.FormValue("query"), answers)
	}))
	defer server.Close()
	r, err := startRelay(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer r.stop()
	ask := func(query, at string) string {
		t.Helper()
		response, err := http.Post(r.url()+"/api/v1/query", "application/x-www-form-urlencoded",
			strings.NewReader(url.Values{"query": {query}, "time": {at}}.Encode()))
		if err != nil {
			return "no answer"
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusAccepted {
			t.Errorf("%s: %v", response.Status, err)
		}
		return string(body)
	}
	expect := func(query, at, want string) {
		t.Helper()
		if got := ask(query, at); got != want {
			t.Errorf("%s at %s: got %q, want %q", query, at, got, want)
		}
	}
	expect("up", "1", "/api/v1/query up 1")
	expect("up", "2", "/api/v1/query up 2")
	r.freeze(true)
	expect("up", "3", "/api/v1/query up 2")
	expect("down", "3", "/api/v1/query down 3") // nothing to repeat
	r.freeze(false)
	expect("up", "4", "/api/v1/query up 4")
	server.Close()
	expect("up", "5", "no answer")
}
