package e2e

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// History records calls with the times of their invocation and of their answer, for the check that
// each seems to happen at one instant between them.
type History struct {
	began time.Time
	mu    sync.Mutex
	calls []porcupine.Operation
}

// NewHistory returns an empty history.
func NewHistory() *History { return &History{began: time.Now()} }

// Now returns the time since the beginning.
func (h *History) Now() int64 { return int64(time.Since(h.began)) }

// Add records a call that was invoked at a time, and is answered now.
func (h *History) Add(called int64, input, output any) {
	h.add(porcupine.Operation{Input: input, Call: called, Output: output, Return: h.Now()})
}

// AddUnknown records a call without an answer: it may take effect at any later time, or never.
func (h *History) AddUnknown(called int64, input, output any) {
	h.add(porcupine.Operation{Input: input, Call: called, Output: output, Return: math.MaxInt64})
}

func (h *History) add(o porcupine.Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	o.ClientId = len(h.calls) // a client whose call is without an answer makes further ones
	h.calls = append(h.calls, o)
}

// Calls returns all calls.
func (h *History) Calls() []porcupine.Operation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.calls)
}

// historyLimit limits the search for an order of the calls of one object.
const historyLimit = 2 * time.Minute

// partition divides a history by the object of its calls.
func partition(object func(input any) string) func([]porcupine.Operation) [][]porcupine.Operation {
	return func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
		at := map[string]int{}
		for _, o := range history {
			key := object(o.Input)
			i, known := at[key]
			if !known {
				i = len(parts)
				at[key] = i
				parts = append(parts, nil)
			}
			parts[i] = append(parts[i], o)
		}
		return parts
	}
}

// checkHistory fails the test unless the calls of each object have an order that the model permits.
// It shows the calls of the first object that has none.
func checkHistory(
	t testing.TB, model porcupine.NondeterministicModel, history []porcupine.Operation,
) {
	t.Helper()
	failed := 0
	parts := model.Partition(history)
	for _, part := range parts {
		one := model
		one.Partition = nil
		switch porcupine.CheckOperationsTimeout(one.ToModel(), part, historyLimit) {
		case porcupine.Unknown:
			t.Errorf("an order of %d calls was not found within %v", len(part), historyLimit)
		case porcupine.Illegal:
			if failed++; failed > 1 {
				continue
			}
			slices.SortFunc(part, func(a, b porcupine.Operation) int {
				return int(a.Call - b.Call)
			})
			text := ""
			for _, o := range part {
				until := "never answered"
				if o.Return != math.MaxInt64 {
					until = time.Duration(o.Return).String()
				}
				text += fmt.Sprintf("%v to %s: %s\n", time.Duration(o.Call), until,
					model.DescribeOperation(o.Input, o.Output))
			}
			t.Errorf("these %d calls have no order that explains their answers:\n%s", len(part),
				text)
		}
	}
	if failed > 0 {
		t.Errorf("the calls of %d of %d objects have no order", failed, len(parts))
	}
	t.Logf("%d calls of %d objects are linearizable but for %d objects", len(history), len(parts),
		failed)
}
