package engine_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/simulator/engine"
)

// repeater adds the same work to a number of iterations.
type repeater struct {
	adds   engine.Filling
	left   int
	saw    []engine.Scheduled
	filled []time.Time
}

func (g *repeater) Fill(_ time.Time, s *engine.Scheduled) engine.Filling {
	seen := *s
	seen.Streams = append([]engine.Stream(nil), s.Streams...)
	g.saw = append(g.saw, seen)
	if g.left == 0 {
		return engine.Filling{}
	}
	g.left--
	return g.adds
}

func (g *repeater) Filled(end time.Time) { g.filled = append(g.filled, end) }

func fillable(t *testing.T) (*engine.Engine, costmodel.Model) {
	t.Helper()
	p, ok := engine.ProfileNamed("llama-70b-a100")
	if !ok {
		t.Fatal("no such profile")
	}
	cfg := engine.DefaultConfig(p)
	cfg.Noise, cfg.MaxRun = 0, 64
	e, err := engine.New(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e, p.CostModel
}

func TestFillerLengthensIterationsAndNothingElse(t *testing.T) {
	begin := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	run := func(f *repeater) (steps []time.Duration, done []engine.Completion) {
		e, _ := fillable(t)
		if f != nil {
			e.SetFiller(f)
		}
		if err := e.Submit(begin, engine.Request{ID: 1, Prompt: 300, Output: 5}); err != nil {
			t.Fatal(err)
		}
		for _, now := range []time.Time{begin, begin.Add(time.Minute)} {
			e.Advance(now, func(it *engine.Iteration) {
				steps = append(steps, it.Steps...)
				done = append(done, it.Finished...)
			})
		}
		return steps, done
	}
	unfilled, _ := run(nil)
	idle := &repeater{}
	if withFiller, _ := run(idle); !cmp.Equal(unfilled, withFiller) {
		t.Errorf("a filler that adds nothing changes iterations from %[2]v to %[1]v", withFiller,
			unfilled)
	}
	_, model := fillable(t)
	full := &repeater{left: len(unfilled), adds: engine.Filling{Decoding: 3, Context: 3000,
		Chunks: []costmodel.Chunk{{Tokens: 40, Context: 100}}}}
	withFiller, done := run(full)
	if len(withFiller) != len(unfilled) || len(done) != 1 || done[0].Output != 5 {
		t.Fatalf("%d iterations, %+v; want %d and the complete answer", len(withFiller), done,
			len(unfilled))
	}
	chunks := []costmodel.Chunk{{Tokens: 40, Context: 100}}
	for i := range withFiller {
		want := iteration(model, 1+3, 301+i-1+3000, chunks...)
		if i == 0 {
			want = iteration(model, 3, 3000, costmodel.Chunk{Tokens: 300}, chunks[0])
		}
		if off := withFiller[i] - want; off < -time.Microsecond || off > time.Microsecond {
			t.Errorf("iteration %d takes %v, want %v", i, withFiller[i], want)
		}
	}
	if len(full.filled) != len(withFiller) {
		t.Errorf("%d ends reported, want %d", len(full.filled), len(withFiller))
	}
	first, last := full.saw[0], full.saw[len(full.saw)-1]
	if first.Tokens != 300 || first.FreeTokens != 212 || first.FreeSeqs != 255 ||
		first.Streams[0].Uncomputed != 300 || !first.Streams[0].FirstToken.IsZero() {
		t.Errorf("first scheduled %+v", first)
	}
	if len(last.Streams) != 0 {
		t.Errorf("last scheduled %+v, want no requests", last)
	}
}

func TestFillerKeepsAnIdleEngineGoing(t *testing.T) {
	begin := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	e, model := fillable(t)
	f := &repeater{left: 3, adds: engine.Filling{Decoding: 10, Context: 5000}}
	e.SetFiller(f)
	count := 0
	e.Advance(begin.Add(time.Minute), func(*engine.Iteration) { count++ })
	// The first call runs the engine until nothing is added.
	e.Advance(begin.Add(2*time.Minute), func(*engine.Iteration) { count++ })
	if count != 3 || len(f.filled) != 3 {
		t.Errorf("%d iterations, %d ends reported; want 3", count, len(f.filled))
	}
	if took := f.filled[1].Sub(f.filled[0]); took != iteration(model, 10, 5000) {
		t.Errorf("an iteration took %v, want %v", took, iteration(model, 10, 5000))
	}
	if s := e.Snapshot(begin.Add(3 * time.Minute)); s.Running != 0 || s.KVBlocksUsed != 0 ||
		s.GeneratedTokens != 0 {
		t.Errorf("the snapshot includes the filler's work: %+v", s)
	}
}
