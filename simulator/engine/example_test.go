package engine_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
)

// An engine in virtual time: the driver jumps from end to end.
func ExampleEngine() {
	profile, _ := engine.ProfileNamed("llama-70b-h100")
	config := engine.DefaultConfig(profile)
	config.MaxRun = 64
	e, err := engine.New(config, rand.New(rand.NewPCG(1, 0)))
	if err != nil {
		panic(err)
	}

	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := start
	for id := range engine.ID(3) {
		if err := e.Submit(now, engine.Request{ID: id, Prompt: 700, Output: 100 * int(
			id+1)}); err != nil {
			panic(err)
		}
	}
	for {
		end, busy := e.Begin(now)
		if !busy {
			break
		}
		now = end
		for _, c := range e.End().Finished {
			mean := c.Finished.Sub(c.FirstToken) / time.Duration(c.Output-1)
			fmt.Printf("request %d: %d tokens, %v each\n", c.ID, c.Output,
				mean.Round(time.Millisecond))
		}
	}
	fmt.Println("iterations:", e.Snapshot(now).Iterations)
	// Output:
	// request 0: 100 tokens, 16ms each
	// request 1: 200 tokens, 16ms each
	// request 2: 300 tokens, 16ms each
	// iterations: 301
}
