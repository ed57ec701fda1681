package dispatch_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/runner"
	"github.com/tidefill/tidefill/store"
)

// plannedRunners waits until the pool has these runners.
func plannedRunners(t *testing.T, d *dispatch.Dispatcher, want ...string) {
	t.Helper()
	var got []string
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(
		5 * time.Millisecond) {
		got = nil
		for _, pool := range d.Pools() {
			for _, r := range pool.Runners {
				got = append(got, r.ID)
			}
		}
		if slices.Equal(got, want) {
			return
		}
	}
	t.Fatalf("the pool has %v, want %v", got, want)
}

// All lines go to the gateway, whichever engine they stand for.
func TestLinesOfEnginesGoToTheGateway(t *testing.T) {
	// The gateway answers once it has more lines than one engine carries.
	const one = 16
	var come atomic.Int64
	enough := make(chan struct{})
	up := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if come.Add(1) == one+1 {
			close(enough)
		}
		select {
		case <-enough:
		case <-r.Context().Done():
		}
		io.WriteString(w, okBody)
	}, "m")
	w := newWorld(t)
	registry := prometheus.NewRegistry()
	d, _ := w.dispatcher("a", func(_ *dispatch.Config, deps *dispatch.Deps) {
		deps.Upstreams = []dispatch.Upstream{{URL: up.URL, Name: "gw", Mode: "gateway",
			Engines: []string{"http://a:1/metrics", "b:."}}}
		deps.Registerer = registry
	})
	plannedRunners(t, d, "gw")
	for _, engine := range []string{"gw/a:1", "gw/b:1"} {
		r := flowcontrol.NoReading(flowcontrol.Metrics, time.Now())
		d.Observe(engine, "", &r)
	}
	plannedRunners(t, d, "gw/a:1", "gw/b:1")
	if b := w.awaitEnd(w.submit(chatLines(200, "m"), nil)); b.Counts.Completed != 200 {
		t.Errorf("got %+v, want all lines completed", b.Counts)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "tidefill_requests_total" {
			if text := f.String(); !strings.Contains(text, `"gw"`) ||
				strings.Contains(text, "a:1") {
				t.Errorf("requests are counted for %s", text)
			}
		}
	}
}

// A runner that says that its queue is full gets no line until it says otherwise. Of two models it
// gets the one that it has loaded.
func TestRunnersThatTakeNoLines(t *testing.T) {
	up := serve(t, nil, "m", "n")
	w := newWorld(t)
	d, _ := w.dispatcher("a", nil, up.URL)
	name := strings.TrimPrefix(up.URL, "http://")
	plannedRunners(t, d, name)
	d.ObserveState(name, runner.State{Queue: 16, MaxQueue: 16})
	b := w.submit(chatLines(3, "m"), nil)
	w.await(b, "waiting for queue_full", func(store.Batch) bool {
		return w.waitsFor(b, plan.QueueFull)
	})
	d.ObserveState(name, runner.State{NotLoaded: []string{"n"}})
	w.awaitEnd(b)
	other := w.submit(chatLines(3, "n"), nil)
	w.await(other, "waiting for a runner", func(store.Batch) bool {
		return w.progress(other).Waiting == "no_runner: model \"n\" is not loaded by the runners "+
			"that have it."
	})
	d.ObserveState(name, runner.State{})
	w.awaitEnd(other)
}

// A gateway that has lost an engine answers 502 at once, until it notices. The line is not taken
// for the cause, as it would be of an engine.
func TestGatewaysThatFindNoEngine(t *testing.T) {
	for _, mode := range []string{"gateway", ""} {
		var requests atomic.Int64
		up := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			if requests.Add(1) <= 8 {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			io.WriteString(w, okBody)
		}, "m")
		w := newWorld(t)
		w.dispatcher("a", func(_ *dispatch.Config, deps *dispatch.Deps) {
			deps.Upstreams = []dispatch.Upstream{{URL: up.URL, Mode: mode}}
		})
		b := w.awaitEnd(w.submit(chatLines(1, "m"), nil))
		if completed := b.Counts.Completed == 1; completed != (mode == "gateway") {
			t.Errorf("mode %q: got %+v", mode, b.Counts)
		}
	}
}
