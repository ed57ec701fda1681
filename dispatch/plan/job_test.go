package plan

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestLineQueueAgreesWithASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q lineQueue
		var want []line
		next := int32(0)
		fresh := func() line { next++; return line{slot: next, prompt: next % 7} }
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for range rapid.SampledFrom([]int{1, 20, 1500}).Draw(t, "lines") {
					l := fresh()
					q.push(l)
					want = append(want, l)
				}
			},
			"push front": func(t *rapid.T) {
				for range rapid.SampledFrom([]int{1, 40}).Draw(t, "lines") {
					l := fresh()
					q.pushFront(l)
					want = slices.Insert(want, 0, l)
				}
			},
			"pop": func(t *rapid.T) {
				for range rapid.SampledFrom([]int{1, 30, 1200, 5000}).Draw(t, "lines") {
					if len(want) == 0 {
						return
					}
					if got := q.pop(); got != want[0] {
						t.Fatalf("popped %d, want %d", got.slot, want[0].slot)
					}
					want = want[1:]
				}
			},
			"": func(t *rapid.T) {
				tokens := 0
				for _, l := range want {
					tokens += int(l.prompt)
				}
				if q.len() != len(want) || q.promptTokens() != tokens {
					t.Fatalf(
						"holds %d lines of %d tokens, want %d of %d", q.len(), q.promptTokens(),
						len(want), tokens)
				}
			},
		})
	})
}

// The memory of a queue depends on the lines that it holds, not on those that passed through.
func TestLineQueueReleasesMemory(t *testing.T) {
	var q lineQueue
	for range 1000 {
		q.push(line{})
	}
	for range 1_000_000 {
		q.push(q.pop())
	}
	if cap(q.lines) > 10_000 {
		t.Errorf("1000 lines in a queue for %d", cap(q.lines))
	}
	for range 1_000_000 {
		q.pushFront(q.pop())
	}
	if cap(q.lines) > 10_000 {
		t.Errorf("1000 lines in a queue for %d", cap(q.lines))
	}
}
