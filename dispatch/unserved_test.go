package dispatch_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/store"
)

const noSmal = `model "smal" is served by no runner; served: large, small. Did you mean "small"?`

// awaitAnswers waits until a dispatcher leads the model, and so has asked its upstreams.
func awaitAnswers(w *world, model string) {
	w.t.Helper()
	name := "model/" + model
	until(w.t, "somebody leads "+name, func() bool {
		leaders, err := w.meta.Leaders(w.t.Context(), []string{name})
		if err != nil {
			w.t.Fatal(err)
		}
		return leaders[name] != ""
	})
	w.await(w.submit(chatLines(1, model), nil), "completed", func(b store.Batch) bool {
		return b.State == store.Completed
	})
}

func checkNotFound(t *testing.T, b store.Batch, want ...string) {
	t.Helper()
	if b.State != store.Failed || len(b.Errors) != len(want) {
		t.Fatalf("the batch is %s with %d errors, want it failed with %d: %v", b.State,
			len(b.Errors), len(want), b.Errors)
	}
	for i, fault := range b.Errors {
		if fault.Code != "model_not_found" || fault.Message != want[i] {
			t.Errorf("got %s: %s\nwant %s", fault.Code, fault.Message, want[i])
		}
	}
}

func TestBatchOfAnUnservedModelFails(t *testing.T) {
	up := serve(t, nil, "small", "large")
	w := newWorld(t)
	d, _ := w.dispatcher("a", nil, up.URL)
	awaitAnswers(w, "small")
	both := append(chatLines(2, "small"), chatLines(5, "smal")[2:]...)
	b := w.awaitEnd(w.submit(both, nil))
	checkNotFound(t, b, noSmal)
	if up.requests() != 1 {
		t.Errorf("%d requests, want only that of the first batch", up.requests())
	}
	got, err := d.UnservedModels(t.Context(), []string{"small", "smal", "else"})
	if err != nil || len(got) != 2 || got["smal"] != noSmal ||
		got["else"] != `model "else" is served by no runner; served: large, small.` {
		t.Errorf("got %q, %v", got, err)
	}
}

// A runner that has not answered since the start may serve the model. What the batch waits for is
// said meanwhile.
func TestBatchWaitsForRunnersThatHaveNotAnswered(t *testing.T) {
	for _, late := range []string{"large", "smal"} {
		t.Run(late, func(t *testing.T) {
			down := serve(t, nil)
			addr := down.Listener.Addr().String()
			down.Close()
			w := newWorld(t)
			d, _ := w.dispatcher("a", nil, serve(t, nil, "small").URL, "http://"+addr)
			awaitAnswers(w, "small")
			id := w.submit(append(chatLines(2, "small"), chatLines(5, "smal")[2:]...), nil)
			want := `no_runner: model "smal" is served by no runner; served: small. ` +
				`Did you mean "small"? No list of models yet from: ` + addr + "."
			w.await(id, "waiting with that sentence", func(store.Batch) bool {
				return w.progress(id).Waiting == want
			})
			if got, err := d.UnservedModels(t.Context(), []string{"smal"}); len(got) > 0 ||
				err != nil {
				t.Errorf("it is known already: %q, %v", got, err)
			}
			serveAt(t, addr, late)
			b := w.awaitEnd(id)
			output, errs := w.results(id)
			if late == "smal" {
				if b.State != store.Completed || len(output) != 5 {
					t.Errorf("the batch is %s with %+v", b.State, b.Counts)
				}
				return
			}
			checkNotFound(t, b, noSmal)
			if len(output) != 2 || len(errs) != 3 {
				t.Fatalf("%d results and %d errors, want 2 and 3", len(output), len(errs))
			}
			if e := errs[0].Error; e.Code != "batch_stopped" ||
				!strings.HasSuffix(e.Message, `Did you mean "small".`) {
				t.Errorf("the error of a line: %s: %s", e.Code, e.Message)
			}
		})
	}
}

// These models may be served again, so batches wait for them.
func TestBatchWaitsForExpectedModels(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*dispatch.Config, *dispatch.Deps)
		others []string // what another upstream of another process serves
	}{
		"by configuration": {change: func(c *dispatch.Config, _ *dispatch.Deps) {
			c.WaitForModels = true
		}},
		"of a configured pool": {change: func(_ *dispatch.Config, d *dispatch.Deps) {
			flow := d.Registry.FlowControl()
			flow.Pools = map[string]flowcontrol.Config{"smal": flow}
			d.Registry = registry.New(nil, flow)
		}},
		"of a scaled pool": {change: func(_ *dispatch.Config, d *dispatch.Deps) {
			d.Registry = registry.New([]registry.Pool{{Name: "gpus", Models: []string{"smal"}}},
				d.Registry.FlowControl())
		}},
		"of another process": {others: []string{"smal"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if c.others != nil {
				w.dispatcher("b", nil, serve(t, nil, c.others...).URL)
				awaitAnswers(w, c.others[0])
			}
			d, _ := w.dispatcher("a", c.change, serve(t, nil, "small").URL)
			awaitAnswers(w, "small")
			if got, err := d.UnservedModels(t.Context(), []string{"smal"}); len(got) > 0 ||
				err != nil {
				t.Errorf("got %q, %v; want none", got, err)
			}
			id := w.submit(chatLines(3, "smal"), nil)
			if c.others != nil {
				if b := w.awaitEnd(id); b.State != store.Completed {
					t.Errorf("the batch is %s: %v", b.State, b.Errors)
				}
				return
			}
			w.await(id, "waiting", func(b store.Batch) bool {
				return strings.HasPrefix(w.progress(id).Waiting, "no_runner: ")
			})
		})
	}
}

// A gateway may list a model for a while only. Its batches wait until it comes back.
func TestBatchWaitsForAModelThatWasServed(t *testing.T) {
	up := newChanging(t, "small", "large")
	w := newWorld(t)
	d, _ := w.dispatcher("a", up.often, up.URL)
	awaitAnswers(w, "large")
	up.list("small")
	until(t, "one model is listed", func() bool { return len(d.Models()) == 1 })
	id := w.submit(chatLines(3, "large"), nil)
	w.await(id, "waiting", func(store.Batch) bool {
		return strings.HasPrefix(w.progress(id).Waiting, `no_runner: model "large"`)
	})
	up.list("small", "large")
	if b := w.awaitEnd(id); b.State != store.Completed {
		t.Errorf("the batch is %s: %v", b.State, b.Errors)
	}
}

// Results in a chunk that is not done show too that a model was served.
func TestBatchWaitsAfterARestartForAModelOfWhichLinesAreDone(t *testing.T) {
	up := newChanging(t, "large")
	var requests atomic.Int64
	up.answer = func(w http.ResponseWriter, r *http.Request) {
		if io.Copy(io.Discard, r.Body); requests.Add(1) > 10 {
			<-r.Context().Done()
			return
		}
		io.WriteString(w, okBody)
	}
	w := newWorld(t)
	node := func(c *dispatch.Config, deps *dispatch.Deps) {
		up.often(c, deps)
		c.Drain = 0
	}
	_, stop := w.dispatcher("a", node, up.URL)
	id := w.submit(chatLines(20, "large"), nil)
	w.await(id, "with 10 results", func(store.Batch) bool { return w.progress(id).Completed == 10 })
	stop()
	requests.Store(-1000)
	up.list("small")
	w.dispatcher("a", node, up.URL)
	w.await(id, "waiting", func(b store.Batch) bool {
		if b.State.Terminal() {
			t.Fatalf("the batch is %s: %v", b.State, b.Errors)
		}
		return strings.HasPrefix(w.progress(id).Waiting, `no_runner: model "large"`)
	})
	up.list("large")
	if b := w.awaitEnd(id); b.State != store.Completed {
		t.Errorf("the batch is %s: %v", b.State, b.Errors)
	}
}

// Names that users and upstreams invent don't make sentences long.
func TestSentencesAreBounded(t *testing.T) {
	var models []string
	for i := range 100 {
		models = append(models, fmt.Sprintf("m-%d-%s", i, strings.Repeat("x", 200)))
	}
	w := newWorld(t)
	d, _ := w.dispatcher("a", nil, serve(t, nil, models...).URL)
	awaitAnswers(w, models[0])
	long := strings.Repeat("y\n", 200)
	got, err := d.UnservedModels(t.Context(), []string{long, ""})
	if err != nil || len(got[long]) > 1500 || strings.Contains(got[long], "\n") ||
		!strings.Contains(got[long], "and 90 more") {
		t.Errorf("got %d bytes: %s, %v", len(got[long]), got[long], err)
	}
	if !strings.HasPrefix(got[""], "lines without a model are served by no runner") {
		t.Errorf("got %q", got[""])
	}
}
