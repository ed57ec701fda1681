package plan

import (
	"testing"
	"time"
)

// unknownModel is the answer of a runner that does not know the model.
var unknownModel = Finished{Outcome: Denied, Status: 404, Unknown: true}

// A runner that does not know the model, from the start, in the midst of the batch, for an hour or
// now and then, costs no line, beside a good one and alone.
func TestRunnerWithoutTheModelCostsNoLine(t *testing.T) {
	between := func(from, to time.Duration) func(time.Duration, int) bool {
		return func(at time.Duration, _ int) bool { return at >= from && at < to }
	}
	for name, lost := range map[string]func(at time.Duration, n int) bool{
		"an hour":               between(0, time.Hour),
		"an hour, in the midst": between(3*time.Second, time.Hour),
		"every other minute": func(at time.Duration, _ int) bool {
			return at/time.Minute%2 == 1
		},
		"every other request": func(_ time.Duration, n int) bool { return n%2 > 0 },
	} {
		n := 0
		for _, runners := range [][]string{{"r1"}, {"r1", "r2"}} {
			for _, lines := range []int{3, 5000} {
				t.Run(name, func(t *testing.T) {
					b := &badRunners{runners: runners, flow: fixedLines(20), batches: []int{lines},
						bad: func(runner string, at time.Duration, _, _ int) *Finished {
							if n++; runner == "r1" && lost(at, n) {
								return &unknownModel
							}
							return nil
						}}
					b.run(t)
					t.Logf("%v, %d lines: %d failed, took %v, requests %v", runners, lines,
						b.failed[0], b.took, b.requests)
					if b.failed[0] > 0 || b.succeeded[0] != lines {
						t.Errorf("%d lines failed", b.failed[0])
					}
					alone := time.Duration(lines/20+2) * 2 * time.Second * 105 / 100
					if len(runners) > 1 && b.took > alone {
						t.Errorf("took %v: the good runner was not at its limit", b.took)
					}
				})
			}
		}
	}
}

// A batch whose model no runner knows waits with the reason, costs its runners few requests, and
// takes nothing from a batch of another model of theirs.
func TestBatchWithoutItsModelWaits(t *testing.T) {
	for _, runners := range [][]string{{"r1"}, {"r1", "r2", "r3"}} {
		b := &badRunners{runners: runners, flow: fixedLines(20), batches: []int{5000, 2000},
			bad: func(_ string, _ time.Duration, batch, _ int) *Finished {
				if batch == 0 {
					return &unknownModel
				}
				return nil
			}, until: 10 * time.Hour}
		took := time.Duration(0)
		b.ended = func(batch, left int, at time.Duration) {
			if batch == 1 && left == 0 {
				took = at
			}
		}
		b.run(t)
		t.Logf("%d failed, the other took %v, requests %v", b.failed[0], took, b.requests)
		if b.failed[0] > 0 || b.status.Waiting != RunnersFailing ||
			b.status.Failing.Failed != (RunnerFailure{Denied, 404}) ||
			b.status.FailingRunners != len(runners) {
			t.Errorf("%d lines failed; %+v", b.failed[0], b.status)
		}
		alone := 2000 / 20 / time.Duration(len(runners)) * 2 * time.Second
		if b.succeeded[1] != 2000 || took > alone*11/10 {
			t.Errorf("the other batch: %d lines answered within %v, want all within %v",
				b.succeeded[1], took, alone)
		}
		// 20 at once, and then one every two minutes
		for r, n := range b.requests {
			if most := 2000 + 20 + 12 + 10*30; n > most {
				t.Errorf("%s got %d requests, want at most %d", r, n, most)
			}
		}
	}
}

// A line that gets such an answer for what it names itself fails in hours, not at its deadline, and
// the others of its batch do not wait for it.
func TestLineThatNamesSomethingUnknownFails(t *testing.T) {
	for _, runners := range [][]string{{"r1"}, {"r1", "r2"}} {
		b := &badRunners{runners: runners, flow: fixedLines(20), batches: []int{500},
			bad: func(_ string, _ time.Duration, _, line int) *Finished {
				if line == 7 {
					return &unknownModel
				}
				return nil
			}, until: 10 * time.Hour}
		others := time.Duration(0)
		b.ended = func(_, left int, at time.Duration) {
			if left == 1 {
				others = at
			}
		}
		b.run(t)
		t.Logf("%d failed, took %v, the others %v", b.failed[0], b.took, others)
		if b.failed[0] != 1 || b.succeeded[0] != 499 || b.took > 4*time.Hour {
			t.Errorf("%d lines failed, %d succeeded, after %v", b.failed[0], b.succeeded[0], b.took)
		}
		if alone := 500 / 20 / time.Duration(len(runners)) * 2 * time.Second; others > 2*alone {
			t.Errorf("the others took %v, want about %v", others, alone)
		}
	}
}

// A line that has failed before its runner lost the model waits as the others do, whatever was
// answered well until then.
func TestEarlierTroubleFailsNoLineWithoutItsModel(t *testing.T) {
	for name, test := range map[string]struct {
		earlier         Finished
		lines           int
		failsTo, lostAt time.Duration
	}{
		"another failure": {Finished{Outcome: Failed, Status: 500}, 22, time.Second,
			1500 * time.Millisecond},
		"a moment without it": {unknownModel, 44, 2 * time.Second, 3500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			b := &badRunners{runners: []string{"r1"}, flow: fixedLines(20),
				batches: []int{test.lines},
				bad: func(_ string, at time.Duration, _, line int) *Finished {
					switch {
					case line == 0 && at < test.failsTo:
						return &test.earlier
					case at >= test.lostAt && at < 5*time.Hour:
						return &unknownModel
					}
					return nil
				}}
			b.run(t)
			if b.failed[0] > 0 || b.succeeded[0] != test.lines {
				t.Errorf("%d lines failed, %d succeeded", b.failed[0], b.succeeded[0])
			}
		})
	}
}

// Batches without their model do not keep others from starting, however many there are.
func TestManyBatchesWithoutTheirModel(t *testing.T) {
	b := &badRunners{runners: []string{"r1"}, flow: fixedLines(20), until: 10 * time.Minute,
		bad: func(_ string, _ time.Duration, batch, _ int) *Finished {
			if batch < maxAside {
				return &unknownModel
			}
			return nil
		}}
	for range maxAside + 1 {
		b.batches = append(b.batches, 10)
	}
	b.run(t)
	if b.succeeded[maxAside] != 10 {
		t.Errorf("the last batch has %d answers, want 10", b.succeeded[maxAside])
	}
}
