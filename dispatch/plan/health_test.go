package plan

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/aimd"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/scheduler"
)

// badRunners runs lines in virtual time on runners of which some answer badly.
type badRunners struct {
	runners []string
	flow    flowcontrol.Config
	batches []int // lines of each
	// bad returns how a runner answers a line of a batch at a time since the start; nil: well.
	bad   func(runner string, at time.Duration, batch, slot int) *Finished
	until time.Duration // 0: a day
	// goodTime is the time of a good answer; 0: 2 s.
	goodTime time.Duration
	ended    func(batch, left int, at time.Duration) // nil: nobody asks

	succeeded, failed []int // lines of each batch
	requests          map[string]int
	took              time.Duration
	status            BatchStatus // of the first batch, seen last
}

// badTime is the time of a bad answer.
const badTime = 2 * time.Millisecond

// batchNumber is the place of a job's batch in badRunners.batches.
func batchNumber(key JobKey) int { return int([]rune(key.Batch)[0] - 'a') }

// run runs until every line has a result.
func (b *badRunners) run(t *testing.T) {
	t.Helper()
	goodTime := cmp.Or(b.goodTime, 2*time.Second)
	p := newPlanner(t, DefaultConfig(), Deps{Scheduler: scheduler.DefaultConfig(), Flow: b.flow,
		Random: rand.New(rand.NewPCG(1, 2))})
	type flight struct {
		*Finished
		at time.Time
	}
	now := noon
	var flights []flight
	b.requests = map[string]int{}
	b.succeeded, b.failed = make([]int, len(b.batches)), make([]int, len(b.batches))
	loaded := make([]int, len(b.batches))
	name := func(i int) string { return string(rune('a' + i)) }
	send := func(starts []Start) {
		for _, s := range starts {
			b.requests[s.Runner]++
			f := flight{&Finished{Start: s, Outcome: Succeeded, Status: 200, Latency: goodTime,
				InputTokens: 50, OutputTokens: 5}, now.Add(goodTime)}
			if bad := b.bad(s.Runner, now.Sub(noon), batchNumber(s.Key),
				s.Chunk*100+s.Slot); bad != nil {
				copied := *bad
				copied.Start = s
				f = flight{&copied, now.Add(badTime)}
			}
			flights = append(flights, f)
		}
	}
	step := func(ev Event) Verdict {
		actions := p.Step(now, ev)
		verdict, claims := actions.Verdict, slices.Clone(actions.Claim)
		send(actions.Start)
		for len(claims) > 0 {
			key := claims[0].Key
			claims = claims[1:]
			i := batchNumber(key)
			ev := Loaded{Key: key, Chunk: loaded[i] / 100}
			for n := min(100, b.batches[i]-loaded[i]); len(ev.Lines) < n; {
				ev.Lines = append(ev.Lines, Line{Slot: len(ev.Lines), PromptTokens: 50,
					MaxTokens: 20})
			}
			loaded[i] += len(ev.Lines)
			ev.More = loaded[i] < b.batches[i]
			more := p.Step(now, ev)
			claims = append(claims, more.Claim...)
			send(more.Start)
		}
		return verdict
	}
	left := 0
	for _, r := range b.runners {
		step(RunnerUp{Runner: r, Models: []string{"m"}})
	}
	for i, lines := range b.batches {
		left += lines
		step(BatchPut{Batch{ID: name(i), Tenant: "t", Created: now.Add(time.Duration(i)),
			Models: []ModelLines{{Model: "m", Lines: lines, PromptTokens: int64(50 * lines)}}}})
	}
	limit := b.until
	if limit == 0 {
		limit = 24 * time.Hour
	}
	for left > 0 && now.Sub(noon) < limit {
		next := -1
		for i := range flights {
			if next < 0 || flights[i].at.Before(flights[next].at) {
				next = i
			}
		}
		wake := p.out.Wake
		if next < 0 && wake.IsZero() {
			t.Fatalf("after %v nothing is in flight and nothing is to come; %d lines left",
				now.Sub(noon), left)
		}
		if next < 0 || !wake.IsZero() && wake.Before(flights[next].at) {
			now = wake
			step(Tick{})
			continue
		}
		f := flights[next]
		flights = append(flights[:next], flights[next+1:]...)
		now = f.at
		if step(f.Finished) == Record {
			i := batchNumber(f.Start.Key)
			if left--; f.Outcome == Succeeded {
				b.succeeded[i]++
			} else {
				b.failed[i]++
			}
			if b.ended != nil {
				b.ended(i, b.batches[i]-b.succeeded[i]-b.failed[i], now.Sub(noon))
			}
		}
		if s, known := p.Status(now, name(0)); known {
			b.status = s
		}
	}
	b.took = now.Sub(noon)
}

func fixedLines(n int) flowcontrol.Config {
	return flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: n})
}

var badAnswers = map[string]Finished{
	"500":        {Outcome: Failed, Status: 500},
	"501":        {Outcome: Failed, Status: 501},
	"401":        {Outcome: Denied, Status: 401},
	"html":       {Outcome: Garbled, Status: 200},
	"400":        {Outcome: Refused, Status: 400},
	"405 page":   {Outcome: Refused, Status: 405, Foreign: true},
	"404 page":   {Outcome: Denied, Status: 404},
	"reset":      {Outcome: Died},
	"refused":    {Outcome: Unreachable},
	"overloaded": {Outcome: Shed, Status: 503},
}

func TestBadRunnerBesideAGoodOne(t *testing.T) {
	for kind, bad := range badAnswers {
		for policy, flow := range map[string]flowcontrol.Config{"fixed": fixedLines(20),
			"aimd": flowcontrol.DefaultConfig().Select(aimd.Name, aimd.DefaultConfig())} {
			t.Run(kind+" "+policy, func(t *testing.T) {
				b := &badRunners{runners: []string{"r1", "r2"}, flow: flow, batches: []int{5000},
					bad: func(runner string, _ time.Duration, _, _ int) *Finished {
						if runner == "r1" {
							return &bad
						}
						return nil
					}}
				b.run(t)
				t.Logf("%d failed, %v, requests %v", b.failed[0], b.took, b.requests)
				if b.failed[0] > 0 {
					t.Errorf("%d of 5000 lines failed", b.failed[0])
				}
				longest := 5000 / 20 * 2 * time.Second * 105 / 100
				if policy == "fixed" && kind != "overloaded" && b.took > longest {
					t.Errorf("took %v: the good runner was not at its limit", b.took)
				}
			})
		}
	}
}

func TestOnlyRunnerIsBadForFiveMinutes(t *testing.T) {
	for kind, bad := range badAnswers {
		lost := 0
		switch kind {
		case "400":
			continue // the lines are at fault, as far as anybody knows
		case "501", "405 page":
			lost = suspectAfter // from a runner that has answered others just before
		}
		for _, lines := range []int{3, 20, 5000} {
			if kind == "reset" && lines < 20 {
				continue // lines that break engines are given up
			}
			for _, from := range []time.Duration{0, 3 * time.Second} {
				t.Run(kind, func(t *testing.T) {
					b := &badRunners{runners: []string{"r1"}, flow: fixedLines(20),
						batches: []int{lines},
						bad: func(_ string, at time.Duration, _, _ int) *Finished {
							if at >= from && at < from+5*time.Minute {
								return &bad
							}
							return nil
						}}
					b.run(t)
					t.Logf("%d lines, bad after %v: %d failed, took %v, requests %v", lines, from,
						b.failed[0], b.took, b.requests)
					if b.failed[0] > lost {
						t.Errorf("%d of %d lines failed", b.failed[0], lines)
					}
				})
			}
		}
	}
}

// A runner whose key is taken back in the midst of a batch costs no line while it is back within
// hours, also if it says so with 403, which may be about what a line says.
func TestKeyIsTakenBackForHours(t *testing.T) {
	for _, status := range []int{401, 403} {
		for _, lines := range []int{50, 100, 5000} {
			b := &badRunners{runners: []string{"r1"}, flow: fixedLines(20), batches: []int{lines},
				bad: func(_ string, at time.Duration, _, _ int) *Finished {
					if at > 3*time.Second && at < 2*time.Hour {
						return &Finished{Outcome: Denied, Status: status}
					}
					return nil
				}}
			b.run(t)
			if b.failed[0] > 0 {
				t.Errorf("%d: %d of %d lines failed", status, b.failed[0], lines)
			}
		}
	}
}

// A runner that turns bad and well again every minute costs no line, beside a good one and alone.
func TestRunnerIsBadEveryOtherMinute(t *testing.T) {
	for kind, bad := range badAnswers {
		if kind == "400" || kind == "405 page" || kind == "501" {
			continue
		}
		for _, runners := range [][]string{{"r1"}, {"r1", "r2"}} {
			t.Run(kind, func(t *testing.T) {
				b := &badRunners{runners: runners, flow: fixedLines(20), batches: []int{5000},
					bad: func(runner string, at time.Duration, _, _ int) *Finished {
						if runner == "r1" && at/time.Minute%2 == 1 {
							return &bad
						}
						return nil
					}}
				b.run(t)
				t.Logf("%v: %d failed, took %v, requests %v", runners, b.failed[0], b.took,
					b.requests)
				if b.failed[0] > 0 {
					t.Errorf("%d lines failed", b.failed[0])
				}
			})
		}
	}
}

// Lines that are at fault themselves end, whatever else is in the batch.
func TestLinesAtFaultEnd(t *testing.T) {
	failed, refused := &Finished{Outcome: Failed, Status: 500}, &Finished{Outcome: Refused,
		Status: 400}
	denied, garbled := &Finished{Outcome: Denied, Status: 403}, &Finished{Outcome: Garbled,
		Status: 200}
	for _, test := range []struct {
		name    string
		runners int
		batches []int
		bad     func(batch, slot int) *Finished
		failed  int
		within  time.Duration
	}{
		{"one of twenty", 1, []int{1000}, func(_, slot int) *Finished {
			if slot%20 == 0 {
				return failed
			}
			return nil
		}, 50, 15 * time.Minute},
		{"one of twenty, nearly at once", 1, []int{1000}, nil, 50, 30 * time.Second},
		{"one of twenty, nearly at once, on two", 2, []int{1000}, nil, 50, 30 * time.Second},
		{"one of two", 1, []int{1000}, func(_, slot int) *Finished {
			if slot%2 > 0 {
				return failed
			}
			return nil
		}, 500, time.Hour},
		{"the last three", 1, []int{1000}, func(_, slot int) *Finished {
			if slot >= 997 {
				return failed
			}
			return nil
		}, 3, 20 * time.Minute},
		{"the first hundred", 2, []int{1000}, func(_, slot int) *Finished {
			if slot < 100 {
				return failed
			}
			return nil
		}, 100, 20 * time.Minute},
		{"all, refused", 1, []int{5000}, func(int, int) *Finished { return refused }, 5000,
			time.Minute},
		{"all, refused, two runners", 2, []int{5000}, func(int, int) *Finished { return refused },
			5000, time.Minute},
		{"all but the first, refused", 1, []int{5000}, func(_, slot int) *Finished {
			if slot > 0 {
				return refused
			}
			return nil
		}, 4999, time.Minute},
		{"all of a batch, beside another", 2, []int{200, 3000}, func(batch, _ int) *Finished {
			if batch == 0 {
				return failed
			}
			return nil
		}, 200, 15 * time.Minute},
		{"denied", 1, []int{1000}, func(_, slot int) *Finished {
			if slot%100 == 0 {
				return denied
			}
			return nil
		}, 10, 75 * time.Minute},
		{"garbled", 2, []int{1000}, func(_, slot int) *Finished {
			if slot%100 == 0 {
				return garbled
			}
			return nil
		}, 10, 75 * time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := &badRunners{runners: []string{"r1", "r2"}[:test.runners], flow: fixedLines(20),
				batches: test.batches,
				bad: func(_ string, _ time.Duration, batch, slot int) *Finished {
					return test.bad(batch, slot)
				}}
			if test.bad == nil { // the others are over before the second attempts
				b.flow, b.goodTime = fixedLines(30), 4*time.Millisecond
				b.bad = func(_ string, _ time.Duration, _, slot int) *Finished {
					if slot%20 == 0 {
						return failed
					}
					return nil
				}
			}
			b.run(t)
			t.Logf("failed %v, took %v, requests %v", b.failed, b.took, b.requests)
			if b.failed[0] != test.failed {
				t.Errorf("%d lines failed, want %d", b.failed[0], test.failed)
			}
			if b.took > test.within {
				t.Errorf("took %v, want at most %v", b.took, test.within)
			}
		})
	}
}

// A batch of which nothing shows that its lines are at fault waits, with the reason.
func TestBatchOfFailuresWaits(t *testing.T) {
	for _, runners := range [][]string{{"r1"}, {"r1", "r2", "r3", "r4"}} {
		b := &badRunners{runners: runners, flow: fixedLines(20), batches: []int{50},
			until: 23 * time.Hour, bad: func(string, time.Duration, int, int) *Finished {
				return &Finished{Outcome: Failed, Status: 500}
			}}
		b.run(t)
		t.Logf("failed %v, %v", b.failed, b.requests)
		if b.failed[0] > 0 || b.status.Waiting != RunnersFailing {
			t.Errorf("%d lines failed; waiting: %q", b.failed[0], b.status.Waiting)
		}
		if n := len(runners); b.status.FailingRunners != n || b.status.Runners != n {
			t.Errorf("%d of %d runners fail, want all %d", b.status.FailingRunners,
				b.status.Runners, n)
		}
	}
}
