// Package flowstest tests implementations of flows.Policy, with classes in random states.
package flowstest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tidefill/tidefill/scheduler/flows"
)

// Standings returns n random classes and a number of places. The same seed gives the same.
func Standings(seed uint64, n int) (places int, classes []flows.Standing) {
	random := rand.New(rand.NewPCG(seed, 0))
	places = random.IntN(40)
	left := 1.0
	for i := range n {
		c := flows.Standing{Name: fmt.Sprint("class-", i), Limit: places}
		if random.IntN(2) == 0 {
			c.Reserve = random.Float64() * left
			left -= c.Reserve
		}
		if random.IntN(3) > 0 {
			c.Waiting = random.IntN(20)
		}
		if places > 0 && random.IntN(3) > 0 {
			c.Running = random.IntN(places + 5)
		}
		if random.IntN(4) == 0 {
			c.Limit = random.IntN(places + 1)
		}
		classes = append(classes, c)
	}
	return places, classes
}

// TestPolicy tests the policy of a name.
func TestPolicy(t *testing.T, name string) {
	t.Helper()
	policy := func(t *testing.T) flows.Policy {
		t.Helper()
		p, err := flows.NewPolicy(name)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	t.Run("its name is that of its registration", func(t *testing.T) {
		if got := policy(t).Name(); got != name {
			t.Errorf("Name() = %q, want %q", got, name)
		}
	})
	t.Run("it starts what waits and has a place", func(t *testing.T) {
		for seed := range uint64(5000) {
			places, classes := Standings(seed, 1+int(seed%5))
			i := policy(t).Next(places, classes)
			if i < -1 || i >= len(classes) {
				t.Fatalf("seed %d: class %d of %d", seed, i, len(classes))
			}
			if i < 0 {
				continue
			}
			running := 0
			for _, c := range classes {
				running += c.Running
			}
			if c := classes[i]; c.Waiting == 0 || running >= min(places, c.Limit) {
				t.Fatalf("seed %d: %d run on %d places: it starts one of %+v", seed, running,
					places, c)
			}
		}
	})
	t.Run("it depends on its arguments alone", func(t *testing.T) {
		used := policy(t)
		for seed := range uint64(500) {
			places, classes := Standings(seed, 4)
			before := slices.Clone(classes)
			got, fresh := used.Next(places, classes), policy(t).Next(places, classes)
			if got != fresh || used.Next(places, classes) != got {
				t.Fatalf("seed %d: class %d, by a new policy %d", seed, got, fresh)
			}
			if !slices.Equal(before, classes) {
				t.Fatalf("seed %d: it changed its argument", seed)
			}
		}
	})
	t.Run("no class starves in an empty pool", func(t *testing.T) {
		for i := range 4 {
			classes := make([]flows.Standing, 4)
			for k := range classes {
				classes[k] = flows.Standing{Reserve: 0.25, Limit: 8}
			}
			classes[i].Waiting = 1
			if got := policy(t).Next(8, classes); got != i {
				t.Errorf("class %d alone waits, and class %d starts", i, got)
			}
		}
	})
}
