package dispatch_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/store"
)

// settings returns those of dispatchers in the world, with these upstreams.
func (w *world) settings(upstreams ...dispatch.Upstream) dispatch.Settings {
	deps := w.deps("")
	cfg := dispatch.DefaultConfig()
	cfg.Retry.Base = 5 * time.Millisecond
	cfg.PollEvery, cfg.ProgressEvery = 50*time.Millisecond, 20*time.Millisecond
	return dispatch.Settings{Config: cfg, Upstreams: upstreams, Scheduler: deps.Scheduler,
		Registry: deps.Registry}
}

func apply(t *testing.T, d *dispatch.Dispatcher, to dispatch.Settings) {
	t.Helper()
	change, err := d.Prepare(to)
	if err != nil {
		t.Fatal(err)
	}
	change()
}

// gate is an answer that waits until the gate is open.
func gate() (answer http.HandlerFunc, open func()) {
	opened := make(chan struct{})
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-opened:
			io.WriteString(w, okBody)
		case <-r.Context().Done():
		}
	}, sync.OnceFunc(func() { close(opened) })
}

func awaitThat(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// A removed runner gets no new line and its lines in flight end there. An added one takes over.
func TestRunnersAreAddedAndRemoved(t *testing.T) {
	answer, open := gate()
	defer open()
	later, openLater := gate()
	defer openLater()
	w := newWorld(t)
	first, second := serve(t, answer, "m"), serve(t, later, "m")
	d, _ := w.dispatcher("a", nil, first.URL)
	id := w.submit(chatLines(100, "m"), nil)
	awaitThat(t, "the first runner is full", func() bool { return first.requests() == 16 })

	apply(t, d, w.settings(dispatch.Upstream{URL: second.URL}))
	awaitThat(t, "the second runner is full", func() bool { return second.requests() == 16 })
	open() // the removed runner has free slots now, and 68 lines wait
	w.await(id, "done with the lines of the removed runner", func(b store.Batch) bool {
		return w.progress(id).Completed == 16
	})
	if p := w.progress(id); p.InFlight != 16 || first.requests() != 16 {
		t.Errorf("%d lines are in flight and the removed runner got %d, want 16 and no more",
			p.InFlight, first.requests())
	}
	if pools := d.Pools(); len(pools) != 1 || len(pools[0].Runners) != 1 {
		t.Errorf("the pools are %+v, want one with the second runner", pools)
	}
	openLater()
	w.awaitEnd(id)
	if output, errs := w.results(id); len(output) != 100 || len(errs) != 0 {
		t.Errorf("got %d results and %d errors, want 100 results", len(output), len(errs))
	}
	if n := first.requests() + second.requests(); n != 100 {
		t.Errorf("%d requests for 100 lines", n)
	}
	if models := d.Models(); len(models) != 1 || len(models[0].Runners) != 1 {
		t.Errorf("models are %+v, want one of one runner", models)
	}
}

// What is sent to a runner changes without a gap, and its lines in flight are not sent again.
func TestRunnerIsChanged(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	answer, open := gate()
	defer open()
	w := newWorld(t)
	u := serve(t, func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.Header.Get("X-Version")]++
		mu.Unlock()
		if r.Header.Get("X-Version") == "" {
			answer(rw, r)
			return
		}
		io.WriteString(rw, okBody)
	}, "m")
	d, _ := w.dispatcher("a", nil, u.URL)
	id := w.submit(chatLines(60, "m"), nil)
	awaitThat(t, "the runner is full", func() bool { return u.requests() == 16 })
	to := w.settings(dispatch.Upstream{URL: u.URL, Headers: map[string]string{"X-Version": "2"}})
	to.Registry = fixedLines(20)
	apply(t, d, to)
	if models := d.Models(); len(models) != 1 {
		t.Errorf("models are %+v right after the change, want one", models)
	}
	w.await(id, "done but for the first lines", func(store.Batch) bool {
		return w.progress(id).Completed == 44
	})
	open()
	w.awaitEnd(id)
	w.results(id)
	if seen[""] != 16 || seen["2"] != 44 {
		t.Errorf("requests by version: %v, want 16 before the change and 44 after", seen)
	}
}

// A name that moves to another address is another server: lines in flight end at the old one.
func TestRunnerMoves(t *testing.T) {
	answer, open := gate()
	defer open()
	w := newWorld(t)
	old, next := serve(t, answer, "m"), serve(t, nil, "m")
	d, _ := w.dispatcher("a", func(_ *dispatch.Config, deps *dispatch.Deps) {
		deps.Upstreams = []dispatch.Upstream{{Name: "gpu", URL: old.URL}}
		deps.Registry = fixedLines(4)
	})
	id := w.submit(chatLines(20, "m"), nil)
	awaitThat(t, "the old server is full", func() bool { return old.requests() == 4 })
	to := w.settings(dispatch.Upstream{Name: "gpu", URL: next.URL})
	apply(t, d, to) // at most 16 lines of the name, of which 4 are at the old server
	w.await(id, "done but for the first lines", func(store.Batch) bool {
		return w.progress(id).Completed == 16
	})
	open()
	w.awaitEnd(id)
	w.results(id)
	if old.requests() != 4 || next.requests() != 16 {
		t.Errorf("requests: %d at the old server and %d at the new one, want 4 and 16",
			old.requests(), next.requests())
	}
}

// A model whose runner was removed is not unknown: its batches wait for a runner.
func TestBatchWaitsForTheModelOfARemovedRunner(t *testing.T) {
	w := newWorld(t)
	first, other := serve(t, nil, "m"), serve(t, nil, "n")
	d, _ := w.dispatcher("a", nil, first.URL, other.URL)
	awaitThat(t, "both models are there", func() bool { return len(d.Models()) == 2 })
	apply(t, d, w.settings(dispatch.Upstream{URL: other.URL}))
	if models := d.Models(); len(models) != 1 {
		t.Errorf("models are %+v, want one", models)
	}
	id := w.submit(chatLines(3, "m"), nil)
	w.await(id, "waiting", func(store.Batch) bool {
		return strings.HasPrefix(w.progress(id).Waiting, "no_runner")
	})
	apply(t, d, w.settings(dispatch.Upstream{URL: other.URL}, dispatch.Upstream{URL: first.URL}))
	w.awaitEnd(id)
	w.results(id)
}

func TestRefusedSettingsChangeNothing(t *testing.T) {
	w := newWorld(t)
	u := serve(t, nil, "m")
	d, _ := w.dispatcher("a", nil, u.URL)
	for want, change := range map[string]func(*dispatch.Settings){
		"retry.attempts": func(s *dispatch.Settings) { s.Retry.Attempts = 0 },
		"unknown policy": func(s *dispatch.Settings) {
			flow := s.Registry.FlowControl()
			flow.Policy = "x"
			s.Registry = registry.New(nil, flow)
		},
		"scheduler": func(s *dispatch.Settings) { s.Scheduler.Policy = "x" },
		"two are named": func(s *dispatch.Settings) {
			s.Upstreams = append(s.Upstreams, s.Upstreams...)
		},
		"api_key_env": func(s *dispatch.Settings) {
			s.Upstreams[0].APIKeyEnv = "TIDEFILL_NOT_SET"
		},
	} {
		to := w.settings(dispatch.Upstream{
			URL: strings.Replace(u.URL, "http://", "http://user:secret@", 1)})
		change(&to)
		if _, err := d.Prepare(to); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v, want an error about %s", err, want)
		}
	}
	id := w.submit(chatLines(3, "m"), nil)
	w.awaitEnd(id)
}

// Many changes in a row, while lines run, lose and double none.
func TestManyChangesOfRunners(t *testing.T) {
	w := newWorld(t)
	var all []dispatch.Upstream
	var servers []*upstream
	for range 3 {
		u := serve(t, func(rw http.ResponseWriter, _ *http.Request) {
			time.Sleep(time.Millisecond)
			io.WriteString(rw, okBody)
		}, "m")
		servers = append(servers, u)
		all = append(all, dispatch.Upstream{URL: u.URL})
	}
	d, _ := w.dispatcher("a", nil, all[0].URL)
	const lines = 3000
	id := w.submit(chatLines(lines, "m"), nil)
	for i := 0; w.progress(id).Completed < lines*3/4 && !w.batch(id).State.Terminal(); i++ {
		to := w.settings(slices.Clone(all[:1+i%3])...)
		to.Upstreams[0].Headers = map[string]string{"X-Round": strings.Repeat("x", i%5)}
		to.Registry = fixedLines(4 + i%3)
		apply(t, d, to)
		time.Sleep(3 * time.Millisecond)
	}
	w.awaitEnd(id)
	output, errs := w.results(id)
	requests := 0
	for _, u := range servers {
		requests += u.requests()
	}
	if len(output) != lines || len(errs) != 0 || requests != lines {
		t.Errorf("got %d results, %d errors and %d requests of %d lines", len(output), len(errs),
			requests, lines)
	}
}

// An upstream becomes a gateway with two engines and loses one of them, while lines are in flight.
// Each line is sent once.
func TestRunnerBecomesAGateway(t *testing.T) {
	answer, open := gate()
	defer open()
	w := newWorld(t)
	u := serve(t, answer, "m")
	single := dispatch.Upstream{Name: "gw", URL: u.URL, Metrics: "none"}
	gateway := func(engines ...string) dispatch.Upstream {
		return dispatch.Upstream{Name: "gw", URL: u.URL, Mode: "gateway", Engines: engines}
	}
	d, _ := w.dispatcher("a", func(_ *dispatch.Config, deps *dispatch.Deps) {
		deps.Upstreams = []dispatch.Upstream{single}
	})
	show := func(engines ...string) {
		for _, engine := range engines {
			r := flowcontrol.NoReading(flowcontrol.Metrics, time.Now())
			d.Observe(engine, "", &r)
		}
	}
	const lines = 200
	id := w.submit(chatLines(lines, "m"), nil)
	inFlight := func(n int) {
		t.Helper()
		awaitThat(t, fmt.Sprintf("%d lines are in flight", n), func() bool {
			return u.requests() == n
		})
	}
	inFlight(16)
	show("gw/a") // as of a reader that has not ended yet
	apply(t, d, w.settings(gateway("http://a/metrics", "[bc]")))
	plannedRunners(t, d, "gw")
	show("gw/a", "gw/b", "gw/d")
	plannedRunners(t, d, "gw/a", "gw/b")
	inFlight(48) // 16 on each engine, besides those that were there before
	apply(t, d, w.settings(gateway("b", "c")))
	plannedRunners(t, d, "gw/b")
	show("gw/a", "gw/c")
	plannedRunners(t, d, "gw/b", "gw/c")
	inFlight(64)
	apply(t, d, w.settings(single))
	plannedRunners(t, d, "gw")
	apply(t, d, w.settings())
	plannedRunners(t, d)
	apply(t, d, w.settings(gateway()))
	plannedRunners(t, d, "gw")
	open()
	w.awaitEnd(id)
	output, errs := w.results(id)
	if n := u.requests(); len(output) != lines || len(errs) != 0 || n != lines {
		t.Errorf("got %d results, %d errors and %d requests of %d lines", len(output), len(errs),
			n, lines)
	}
}
