package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// A runner that shows nothing but short answers gets more lines while those take no longer, and
// fewer once they queue.
func TestShortAnswersSetTheLines(t *testing.T) {
	for _, test := range []struct {
		name        string
		atOnce      int // answers that the runner computes at once
		least, most float64
	}{{"with room", 1000, 50, 512}, {"that queues", 8, 4, 24}} {
		t.Run(test.name, func(t *testing.T) {
			c, _ := newPool(t, nil, "r")
			now, lines := noon.Add(time.Minute), 0
			for range 20_000 {
				for g := c.Allowance(now).Runners[0]; lines < g.Lines; lines++ {
					c.Observe(now, &flowcontrol.Started{Load: flowcontrol.Load{Runner: "r",
						InFlight: lines + 1}, PromptTokens: 9})
				}
				took := 200 * time.Millisecond * time.Duration(max(lines, test.atOnce)) /
					time.Duration(test.atOnce)
				now = now.Add(took / time.Duration(max(lines, 1)))
				lines--
				c.Observe(now, &flowcontrol.Answered{Load: flowcontrol.Load{Runner: "r",
					InFlight: lines}, Latency: took, PromptTokens: 9, OutputTokens: 5})
			}
			if c.lines < test.least || c.lines > test.most {
				t.Errorf("%v lines, want %v to %v", c.lines, test.least, test.most)
			}
			if termOf(t, c, now, flowcontrol.TermUnseen) != 1 {
				t.Error("it is not explained that nothing shows users")
			}
			c.roster.Members[0].State.iterations.seenAt = now
			if termOf(t, c, now, flowcontrol.TermUnseen) != 0 {
				t.Error("iterations are seen, and it is explained that nothing shows users")
			}
		})
	}
}

// An answer shows what its prompt costs at most, however high the guess is.
func TestAnswersBoundTheCostOfPrompts(t *testing.T) {
	c, runners := newPool(t, nil, "r")
	guess := c.promptTime()
	answer := func(latency time.Duration, prompt int) {
		c.Observe(noon, &flowcontrol.Answered{Load: flowcontrol.Load{Runner: "r"}, Latency: latency,
			PromptTokens: prompt, OutputTokens: 5})
	}
	answer(time.Millisecond, 5) // mostly the network
	if got := c.promptTime(); got != guess {
		t.Errorf("a token takes %v ms by a prompt of 5, want %v", got, guess)
	}
	answer(30*time.Millisecond, 3000)
	answer(20*time.Second, 3000) // a long answer shows nothing
	if got := c.promptTime(); got != 0.01 {
		t.Errorf("a token takes %v ms, want 0.01 at most", got)
	}
	if runners[0].iterations.seenAt = noon; c.promptTime() != guess {
		t.Errorf("a token takes %v ms although iterations show its cost", c.promptTime())
	}
}

// A line whose prompt was guessed to cost minutes keeps no other waiting once it is answered.
func TestAnsweredPromptsOweNoMoreThanTheyTook(t *testing.T) {
	c, runners := newPool(t, nil, "r")
	c.Observe(noon, &flowcontrol.Started{Load: flowcontrol.Load{Runner: "r", InFlight: 1},
		PromptTokens: 750_000})
	c.Observe(noon, &flowcontrol.Answered{Load: flowcontrol.Load{Runner: "r"},
		Latency: 10 * time.Millisecond, PromptTokens: 3})
	if got := runners[0].budget; got < -10 {
		t.Errorf("%v ms are left for prompts after an answer of 10 ms", got)
	}
}

// A prompt that was estimated at much more than the usage of its answer says keeps the others of a
// pool that shows nothing waiting for seconds, however long the answer took.
func TestOverestimatedPromptsDoNotHoldThePool(t *testing.T) {
	for _, latency := range []time.Duration{10 * time.Millisecond, 300 * time.Millisecond,
		time.Second} {
		c, _ := newPool(t, func(cfg *flowcontrol.Config) {
			cfg.SLO = flowcontrol.DefaultConfig().SLO
			cfg.Engine = flowcontrol.DefaultConfig().Engine
		}, "r")
		now := noon
		await := func(what string) {
			for until := now.Add(5 * time.Minute); ; now = now.Add(100 * time.Millisecond) {
				if g := c.Allowance(now).Runners[0]; g.Lines > 0 && g.Prompt > 0 {
					return
				}
				if now.After(until) {
					t.Fatalf("no line may start %s", what)
				}
			}
		}
		await("at first")
		const estimated = 750_000
		c.Observe(now, &flowcontrol.Started{Load: flowcontrol.Load{Runner: "r", InFlight: 1},
			PromptTokens: estimated})
		for range 10 {
			now = now.Add(latency / 10)
			c.Allowance(now)
		}
		c.Observe(now, &flowcontrol.Answered{Load: flowcontrol.Load{Runner: "r"}, Latency: latency,
			PromptTokens: 3, OutputTokens: 2, Estimated: estimated})
		answered := now
		await("after the answer")
		if waited := now.Sub(answered); waited > 15*time.Second {
			t.Errorf("the next line waits for %v after an answer of %v", waited, latency)
		}
	}
}

// An opaque runner has any number of engines. It gets more lines than one engine has sequences, and
// more prompts than one engine computes, as long as answers take no longer; and fewer once they do.
func TestOpaqueRunnersGrowBeyondOneEngine(t *testing.T) {
	for _, test := range []struct {
		name        string
		atOnce      int // lines that the gateway's engines compute at once without slowing down
		least, most float64
	}{{"many engines", 3000, 200, 4000}, {"a few", 60, 30, 110}} {
		t.Run(test.name, func(t *testing.T) {
			c, _ := newPool(t, func(cfg *flowcontrol.Config) {
				cfg.Engine.MaxSeqs, cfg.Engine.KVTokens = 64, 100_000
			})
			c.Observe(noon, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: "gw"},
				Access: flowcontrol.Opaque})
			now, lines := noon.Add(time.Minute), 0
			for range 200_000 {
				prefilling := 10 * lines // half of the answers take longer than a prompt counts
				for lines < 100_000 {
					g := c.Allowance(now).Runners[0]
					if lines >= g.Lines || prefilling >= g.Prompt {
						break
					}
					lines++
					prefilling += 20
					c.Observe(now, &flowcontrol.Started{Load: flowcontrol.Load{Runner: "gw",
						InFlight: lines, Prefilling: prefilling}, PromptTokens: 20})
				}
				took := 4 * time.Second * time.Duration(max(lines, test.atOnce)) /
					time.Duration(test.atOnce)
				now = now.Add(took / time.Duration(max(lines, 1)))
				if lines > 0 {
					lines--
				}
				c.Observe(now, &flowcontrol.Answered{Load: flowcontrol.Load{Runner: "gw",
					InFlight: lines}, Latency: took, PromptTokens: 20, OutputTokens: 100})
			}
			if c.lines < test.least || c.lines > test.most {
				t.Errorf("%v lines (%d in flight), want %v to %v", c.lines, lines, test.least,
					test.most)
			}
		})
	}
}

// Where no metrics show the load, requests that wait by the runner's capabilities keep further
// lines from starting. Lines of our own that wait do not, nor does an old reading.
func TestQueueOfCapabilitiesStopsLines(t *testing.T) {
	for _, test := range []struct {
		name    string
		waiting float64
		own     int // prompt tokens of lines that wait
		metrics bool
		age     time.Duration
		want    bool
	}{
		{"requests wait", 3, 0, false, 0, true},
		{"nobody waits", 0, 0, false, 0, false},
		{"our own lines wait", 2, 200, false, 0, false},
		{"metrics show the load", 3, 0, true, 0, false},
		{"long ago", 3, 0, false, time.Minute, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, runners := newPool(t, nil, "r")
			now := noon.Add(7 * time.Second)
			for i := range 2 {
				c.Observe(now, &flowcontrol.Started{Load: flowcontrol.Load{Runner: "r",
					InFlight: i + 1, Prefilling: test.own}, PromptTokens: 100})
			}
			if test.metrics {
				runners[0].interactive.seenAt = now
			}
			r := flowcontrol.NoReading(flowcontrol.Capabilities, now)
			r.Waiting = test.waiting
			c.Observe(now, &flowcontrol.Read{Runner: "r", Reading: &r})
			c.lines = 50
			c.invalidate()
			got := c.Allowance(now.Add(test.age)).Runners[0]
			if stopped := got.Reason == ReasonQueue && got.Lines == 2; stopped != test.want {
				t.Errorf("got %+v, want a stop: %v", got, test.want)
			}
		})
	}
}

// Short answers show no iterations. Where a gateway shows users and engines show nothing, lines
// grow by how long these answers take, half as long again as the first ones too.
func TestShortAnswersBesideAGateway(t *testing.T) {
	c, runners := newPool(t, nil, "r")
	c.watched, c.outcomes.at = true, noon
	now := noon
	for i := range 400 {
		now = now.Add(50 * time.Millisecond)
		runners[0].own.lines = int(c.lines)
		latency := 80 * time.Millisecond
		if i >= 40 {
			latency = 120 * time.Millisecond
		}
		c.Observe(now, &flowcontrol.Answered{Load: flowcontrol.Load{Runner: "r",
			InFlight: int(c.lines)}, PromptTokens: 100, OutputTokens: 3, Latency: latency})
	}
	if c.lines < 4*float64(c.cfg.Start) {
		t.Errorf("%v lines after 400 answers, %d at the start", c.lines, c.cfg.Start)
	}
}

// Answers that take longer while a single line runs do so because of users: that line stays, and
// lines grow from what it shows.
func TestOneLineShowsHowThePoolIsWithoutLines(t *testing.T) {
	c, runners := newPool(t, nil, "r")
	c.watched, c.outcomes.at = true, noon
	now := noon
	answer := func(latency time.Duration) {
		now = now.Add(time.Second)
		runners[0].own.lines = 1
		c.Observe(now, &flowcontrol.Answered{Load: flowcontrol.Load{Runner: "r", InFlight: 1},
			PromptTokens: 100, OutputTokens: 3, Latency: latency})
	}
	for i := range 60 {
		latency := 80 * time.Millisecond
		if i >= 20 {
			latency = time.Second
		}
		answer(latency)
	}
	if c.lines < 2 {
		t.Errorf("%v lines after users have slowed a single one down", c.lines)
	}
}
