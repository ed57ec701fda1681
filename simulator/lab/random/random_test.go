package random_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/tidefill/tidefill/simulator/lab/random"
)

const short = 10 * time.Minute

func source(t *testing.T, family string, seed uint64) random.Source {
	t.Helper()
	f, err := random.LookupFamily(family)
	if err != nil {
		t.Fatal(err)
	}
	return random.Source{Seed: seed, Family: f, Horizon: short}
}

func TestTheSameNumberIsTheSamePool(t *testing.T) {
	first, err := source(t, "any", 3).Draw(5)
	if err != nil {
		t.Fatal(err)
	}
	again, err := source(t, "any", 3).Draw(5)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(first, again) {
		t.Errorf("first %+v\nthen %+v", first, again)
	}
	for _, other := range []random.Pool{source(t, "any", 3).Sketch(6),
		source(t, "any", 4).Sketch(5)} {
		if reflect.DeepEqual(first.Scenario.Pool, other.Scenario.Pool) ||
			first.Seed == other.Seed {
			t.Errorf("another number or seed has the same pool %+v", other.Scenario.Pool)
		}
	}
}

func TestEverySketchIsAScenario(t *testing.T) {
	for _, f := range random.Families() {
		s := source(t, f.Name, 1)
		for number := range 200 {
			if err := s.Sketch(number).Setup().Check(); err != nil {
				t.Fatalf("family %s, number %d: %v", f.Name, number, err)
			}
		}
	}
}

// Bursts may be so rare that nobody comes in the first minutes of a busy pool, or in the whole run.
// Another scenario is drawn then, and all other numbers of the seed stay usable.
func TestPoolsWithoutRequestsAreDrawnAgain(t *testing.T) {
	s := source(t, "any", 1201)
	s.Horizon = 30 * time.Minute
	pool, err := s.Draw(40)
	if err != nil {
		t.Fatal(err)
	}
	if pool.NoBatch.Interactive.Requests == 0 {
		t.Errorf("%+v has no requests", pool.Scenario.Interactive)
	}
}

// A draw takes minutes where pools are large, so it ends when it is asked to.
func TestACanceledDrawEnds(t *testing.T) {
	s := source(t, "any", 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Progress = func(float64) error { return ctx.Err() }
	if _, err := s.Draw(5); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was canceled", err)
	}
}
