package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// startFakeHistory serves a history with a step, makes this the default of explain, and returns the
// queries that it was asked.
func startFakeHistory(t *testing.T, step string) (queries *[]string) {
	queries = new([]string)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /admin/pools", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"data":[{"name":"chat","models":["a","b"]}]}`)
	})
	mux.HandleFunc("GET /admin/history", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		*queries = append(*queries, q.Get("pool")+" "+q.Get("since"))
		if q.Get("pool") == "cat" {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"error":{"message":"There is no pool \"cat\"."}}`)
			return
		}
		const shares = `"first_tokens":{"late":0.0123,"late_without":0.01},
			"tokens":{"late":1,"late_without":0.999},"points":12.3,"batch_tokens":999940000`
		fmt.Fprintf(w, `{"object":"list","step":%q,"data":[{"pool":"chat","summary":
			"In the last 7 days users of pool chat had 0.3 points more late answers beside lines, `+
			`of 1.0 allowed; lines took 12.4 M tokens.","rows":[
			{"time":1800000000,"requests":12345678,%s},
			{"time":1800003600,"requests":0,"first_tokens":{},"tokens":{},"batch_tokens":950}],
			"total":{"requests":12345678,%[2]s}},{"pool":"gone","summary":"Nothing."}]}`, step, shares)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Setenv("TIDEFILL_ADMIN", server.URL)
	return queries
}

func TestExplainShowsWhatUsersFelt(t *testing.T) {
	queries := startFakeHistory(t, "hour")
	const want = `In the last 7 days users of pool chat had 0.3 points more late answers beside
lines, of 1.0 allowed; lines took 12.4 M tokens.
                          FIRST   TOKEN    PER       TOKEN            BATCH
  HOUR (UTC)  REQUESTS    LATE    WITHOUT  LATE      WITHOUT  POINTS  TOKENS
  Fri 08:00   12,345,678  1.23 %  1.00 %   100.00 %  99.90 %  12.30   999.9 M
  Fri 09:00   0           -       -        -         -        -       950
  all         12,345,678  1.23 %  1.00 %   100.00 %  99.90 %  12.30   999.9 M

Nothing.
`
	got := must(t, exitOK, "explain", "--since", "24h").out
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	for row := range strings.SplitSeq(got, "\n") {
		if len(row) > 80 {
			t.Errorf("%d columns: %s", len(row), row)
		}
	}
	must(t, exitOK, "explain", "a, b", "--since", "1d12h")
	if refused := must(t, exitError, "explain", "cat", "--since", "1h").errors; !strings.Contains(
		refused, `no pool "cat"`) {
		t.Errorf("an unknown pool: %s", refused)
	}
	if got := strings.Join(*queries, ", "); got != " 24h0m0s, chat 36h0m0s, cat 1h0m0s" {
		t.Errorf("asked %q", got)
	}
	for format, want := range map[string]string{"json": `"late_without":0.01`,
		"yaml": "late_without: 0.01"} {
		if out := must(t, exitOK, "explain", "--since", "7d", "-o", format).out; !strings.Contains(
			out, want) {
			t.Errorf("-o %s prints %s", format, out)
		}
	}
}

func TestExplainShowsDaysOfALongTime(t *testing.T) {
	startFakeHistory(t, "day")
	if got := must(t, exitOK, "explain", "--since", "7d").out; !strings.Contains(got,
		"  DAY (UTC)   REQUESTS") || !strings.Contains(got, "\n  Fri Jan 15  12,345,678") {
		t.Errorf("got:\n%s", got)
	}
}
