package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidefill/tidefill/client"
)

// startFakeAdmin serves the pools by a handler, and no scaling, and makes this the default of
// explain.
func startFakeAdmin(t *testing.T, pools http.HandlerFunc) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /admin/pools", pools)
	mux.HandleFunc("GET /admin/scaling", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"data":[]}`)
	})
	mux.HandleFunc("GET /admin/pools/{pool}/decisions", func(w http.ResponseWriter,
		r *http.Request) {
		if r.PathValue("pool") == "a,b" {
			fmt.Fprint(w, `{"data":[]}`)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"error":{"message":"There is no pool.","code":"pool_not_found"}}`)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Setenv("TIDEFILL_ADMIN", server.URL)
}

// What heads a pool can be copied into the command, quoted where a shell needs it. So can the
// models as the console lists them.
func TestExplainTakesItsOwnHeadings(t *testing.T) {
	startFakeAdmin(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"data":[{"name":"a,b","models":["a","b"]},
			{"name":"night","models":["c","d"]},
			{"name":"it's,f (2 of 4, d3d48803)","models":["it's","f","g","h"]}]}`)
	})
	all := must(t, exitOK, "explain").out
	const long = `'it'\''s,f (2 of 4, d3d48803)'`
	for argument, heading := range map[string]string{
		"a,b": "a,b", "night": "night", "it's,f (2 of 4, d3d48803)": long,
		"a, b": "a,b", "it's, f, g, h": long,
	} {
		heading += "  policy"
		if !strings.Contains(all, heading) {
			t.Errorf("explain lacks %q:\n%s", heading, all)
		}
		got := must(t, exitOK, "explain", argument).out
		if !strings.HasPrefix(got, heading) {
			t.Errorf("explain of %q prints:\n%s", argument, got)
		}
		one := must(t, exitOK, "explain", argument, "--json").out
		if !strings.HasPrefix(one, `{"name":`) {
			t.Errorf("explain of %q as JSON prints %s", argument, one)
		}
	}
	if n := strings.Count(all, "models "); n != 2 {
		t.Errorf("%d pools list their models, want those 2 whose names don't:\n%s", n, all)
	}
	if got := must(t, exitOK, "explain", "a, b", "--since", "1m").out; !strings.HasPrefix(got,
		"a,b\n") {
		t.Errorf("the history prints:\n%s", got)
	}
}

// explain --watch goes on after a restart of the daemon, which knows no pools at first.
func TestExplainWatchWaitsForTheDaemon(t *testing.T) {
	var asked atomic.Int32
	startFakeAdmin(t, func(w http.ResponseWriter, _ *http.Request) {
		switch n := asked.Add(1); {
		case n >= 2 && n <= 4:
			w.WriteHeader(http.StatusServiceUnavailable)
		case n >= 5 && n <= 6:
			panic(http.ErrAbortHandler) // the connection breaks
		case n >= 7 && n <= 8:
			fmt.Fprint(w, `{"data":[]}`)
		default:
			fmt.Fprint(w, `{"data":[{"name":"m","models":["m"]}]}`)
		}
	})
	r := &remote{admin: true}
	c, err := r.client()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, failures watched
	e := &explainer{output: new(output), client: c, pool: "m", out: &out, errors: &failures,
		now: time.Now, every: time.Millisecond}
	ended := make(chan error, 1)
	go func() { ended <- e.run(ctx, true, 0) }()
	awaitWatched(t, &out, 3)
	cancel()
	if err := <-ended; err == nil || client.Temporary(err) && ctx.Err() == nil {
		t.Errorf("--watch ended with %v", err)
	}
	if got := failures.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got,
		"waiting for the daemon") || !strings.Contains(got, "status 503") {
		t.Errorf("it reports %q, want one row", got)
	}
}

// Without an answer before, --watch ends with the error: the address may be wrong.
func TestExplainWatchNeedsAFirstAnswer(t *testing.T) {
	startFakeAdmin(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	must(t, exitError, "explain", "--watch")
}

// Who leads nothing any more is not said to carry lines. A source without readings is named in
// words, with its state.
func TestExplainWithoutALeader(t *testing.T) {
	startFakeAdmin(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"problems":["no_leader: It hangs.","the bucket: no answer within 2s"],
			"time":70,"degraded":[{"source":"metrics","target":"a:1","state":"no_page","since":9,
			"meaning":"It has none."}],
			"data":[{"name":"m","models":["m"],"node":"n2","age_s":8.4,"policy":"fixed",
			"not_led":"no_leader: It hangs.","decision":{"reason":"no_leader","in_flight":0}}]}`)
	})
	const want = "Degraded: no_leader: It hangs.\nDegraded: the bucket: no answer within 2s.\n" +
		"Degraded: metrics of a:1: no reading for 1m01s (no_page). It has none.\n" +
		"m  policy fixed, 0 runners\n  led by      nobody: n2 published this 8.4 s ago\n" +
		"  limited by  no_leader: It hangs.\n\n"
	if got := must(t, exitOK, "explain").out; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
