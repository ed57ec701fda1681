package dispatch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/store"
)

// counting is a policy that learns how often it was handed over.
type counting struct {
	flowcontrol.Controller
	life string
}

func (*counting) Name() string               { return "counting" }
func (c *counting) Learned(time.Time) []byte { return []byte(c.life) }
func (c *counting) Learn(_ time.Time, learned []byte, _ time.Duration) error {
	if strings.Trim(string(learned), "i") != "" {
		return errors.New("it is damaged")
	}
	c.life += string(learned)
	return nil
}

func init() {
	flowcontrol.Register("counting", flowcontrol.Factory{
		New: func(cfg flowcontrol.Config) (flowcontrol.Controller, error) {
			cfg.Policy = "unlimited"
			c, err := flowcontrol.New(cfg)
			return &counting{Controller: c, life: "i"}, err
		},
	})
}

// await waits until a part of the text is logged.
func (l *logged) await(t *testing.T, part string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); l.count(part) == 0; {
		if time.Now().After(deadline) {
			t.Fatalf("not logged: %s", part)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// learner starts a dispatcher that saves what it learns often, and returns what it logs.
func learner(
	w *world, change func(*dispatch.Config, *dispatch.Deps), up string,
) (d *dispatch.Dispatcher, stop func(), log *logged) {
	log = &logged{}
	d, stop = w.dispatcher("node", func(cfg *dispatch.Config, deps *dispatch.Deps) {
		cfg.LearnedEvery = 10 * time.Millisecond
		flow := deps.Registry.FlowControl()
		flow.Policy = "counting"
		deps.Registry = registry.New(nil, flow)
		deps.Logger = slog.New(slog.NewTextHandler(log, nil))
		if change != nil {
			change(cfg, deps)
		}
	}, up)
	return d, stop, log
}

// saved waits for what was learned of the pool "m", and returns the state.
func (w *world) saved(want string) (state store.LearnedState) {
	w.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		states, err := w.meta.Learned(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		if len(states) == 1 && bytes.Contains(states[0].Data, []byte(want)) {
			return states[0]
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("saved are %+v, want %q", states, want)
		}
	}
}

// What a dispatcher has learned reaches the next one, through a crash and through a stop.
func TestLearnedSurvivesRestarts(t *testing.T) {
	w := newWorld(t)
	up := serve(t, okHandler, "m")
	_, stop, log := learner(w, nil, up.URL)
	w.saved(`"Flow":"aQ=="`) // "i"
	stop()
	if log.count("learned") > 0 {
		t.Error("a new pool logs that something was learned")
	}
	w.clock.Store(int64(3 * time.Minute))
	_, stop, log = learner(w, nil, up.URL)
	log.await(t, "flow control continues with what was learned of the pool\" component=dispatch "+
		"node=node pool=m age=3m")
	w.saved(`"Flow":"aWk="`) // "ii"
	stop()

	// a runner of the same name with another engine
	w.clock.Store(0)
	other := serve(t, okHandler, "m")
	_, stop, log = learner(w, nil, other.URL)
	log.await(t, "it was learned of other engines")
	stop()
}

// What was learned since the last save is saved before a dispatcher drains.
func TestLearnedIsSavedAtTheEnd(t *testing.T) {
	w := newWorld(t)
	up := serve(t, okHandler, "m")
	d, stop, _ := learner(w, func(cfg *dispatch.Config, _ *dispatch.Deps) {
		cfg.LearnedEvery = time.Hour
	}, up.URL)
	for deadline := time.Now().Add(10 * time.Second); len(d.Pools()) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("no pool")
		}
		time.Sleep(5 * time.Millisecond)
	}
	stop()
	w.saved("Flow")
}

var okHandler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprint(w, okBody)
})

// A damaged or newer state is logged once and not used.
func TestDamagedStates(t *testing.T) {
	w := newWorld(t)
	up := serve(t, okHandler, "m")
	_, stop, _ := learner(w, nil, up.URL)
	good := w.saved("Flow").Data
	stop()
	for want, data := range map[string]string{
		"it is damaged: unexpected end": string(good[:len(good)/2]),
		"it has version 7":              `{"Version":7}`,
		"policy \\\"other\\\"":          strings.Replace(string(good), "counting", "other", 1),
		"reason=\"it is damaged\"":      strings.Replace(string(good), `"Flow":"`, `"Flow":"eHh4`, 1),
	} {
		o, err := w.meta.Register(t.Context(), "other", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.meta.SaveLearned(t.Context(), o, []store.LearnedState{{Pool: "m",
			Kind: "pool", Data: []byte(data)}}); err != nil {
			t.Fatal(err)
		}
		_, stop, log := learner(w, func(cfg *dispatch.Config, _ *dispatch.Deps) {
			cfg.LearnedEvery = time.Hour
		}, up.URL)
		log.await(t, want)
		id := w.submit(chatLines(5, "m"), nil)
		w.awaitEnd(id)
		if n := log.count(want); n != 1 {
			t.Errorf("%s is logged %d times", want, n)
		}
		stop()
	}
}

// forgetful is a store that keeps nothing that was learned.
type forgetful struct {
	dispatch.Metadata
	asked atomic.Int64
}

func (f *forgetful) SaveLearned(context.Context, store.Owner, []store.LearnedState) error {
	f.asked.Add(1)
	return store.ErrNoSpace
}

func (f *forgetful) Learned(context.Context) ([]store.LearnedState, error) {
	return nil, store.ErrUnavailable
}

// Errors of the store are logged once and change nothing.
func TestLearnedWithoutStore(t *testing.T) {
	w := newWorld(t)
	up := serve(t, okHandler, "m")
	failing := &forgetful{Metadata: w.meta}
	_, _, log := learner(w, func(_ *dispatch.Config, deps *dispatch.Deps) {
		deps.Metadata = failing
	}, up.URL)
	id := w.submit(chatLines(20, "m"), nil)
	if b := w.awaitEnd(id); b.State != store.Completed {
		t.Errorf("the batch is %s", b.State)
	}
	for deadline := time.Now().Add(10 * time.Second); failing.asked.Load() < 3; {
		if time.Now().After(deadline) {
			t.Fatalf("saved %d times", failing.asked.Load())
		}
		time.Sleep(5 * time.Millisecond)
	}
	if n := log.count("what was learned"); n != 1 {
		t.Errorf("logged %d times", n)
	}
}

// A pool that is forgotten begins anew, at once and after a restart.
func TestForget(t *testing.T) {
	w := newWorld(t)
	up := serve(t, okHandler, "m")
	_, stop, _ := learner(w, nil, up.URL)
	w.saved(`"Flow":"aQ=="`)
	stop()
	d, stop, log := learner(w, nil, up.URL)
	w.saved(`"Flow":"aWk="`)
	if err := d.Forget(t.Context(), "nobody"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("forget an unknown pool: %v", err)
	}
	if err := d.Forget(t.Context(), "m"); err != nil {
		t.Fatal(err)
	}
	w.saved(`"Flow":"aQ=="`) // as of a new controller
	log.await(t, "is forgotten")
	id := w.submit(chatLines(5, "m"), nil)
	w.awaitEnd(id)

	standby, stopStandby := w.dispatcher("standby", nil, up.URL)
	for deadline := time.Now().Add(10 * time.Second); !standby.Ready(); {
		if time.Now().After(deadline) {
			t.Fatal("the second dispatcher is not ready")
		}
		time.Sleep(5 * time.Millisecond)
	}
	var elsewhere *dispatch.LedElsewhereError
	if err := standby.Forget(t.Context(), "m"); !errors.As(err, &elsewhere) ||
		elsewhere.Leader() != "node" {
		t.Errorf("forget what another leads: %v", err)
	}
	stopStandby()
	stop()
	if err := d.Forget(t.Context(), "m"); err != nil { // nobody leads it
		t.Error(err)
	}
	if states, err := w.meta.Learned(t.Context()); err != nil || len(states) > 0 {
		t.Errorf("left are %+v, %v", states, err)
	}
}
