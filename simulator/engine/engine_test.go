package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidefill/tidefill/costmodel"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// small returns the configuration of an engine whose iterations take 10 ms plus 1 ms per token.
func small(edit ...func(*Config)) Config {
	c := DefaultConfig(Profile{
		Name: "small", CostModel: costmodel.Model{C0: 10, C1: 1}, KVTokens: 10_000,
		MaxBatchedTokens: 64, MaxSeqs: 8,
	})
	c.Noise = 0
	for _, f := range edit {
		f(&c)
	}
	return c
}

func build(t testing.TB, c Config, seed uint64) *Engine {
	t.Helper()
	e, err := New(c, rand.New(rand.NewPCG(seed, 0)))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// failer is the common part of testing.T and rapid.T.
type failer interface {
	Helper()
	Fatal(args ...any)
}

func submit(t failer, e *Engine, now time.Time, requests ...Request) {
	t.Helper()
	for _, r := range requests {
		if err := e.Submit(now, r); err != nil {
			t.Fatal(err)
		}
	}
}

// iterations runs an engine until it is idle and describes each iteration in a row of text.
func iterations(e *Engine) string {
	var b strings.Builder
	now := epoch
	for {
		end, busy := e.Begin(now)
		if !busy {
			return b.String()
		}
		now = end
		b.WriteString(describe(e.End()))
	}
}

func describe(it *Iteration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v n=%d", it.End.Sub(it.Start), it.Tokens)
	var admitted []ID
	for _, a := range it.Admitted {
		admitted = append(admitted, a.ID)
	}
	for _, part := range []struct {
		name string
		ids  []ID
	}{{"admitted", admitted}, {"preempted", ids(it.Preempted)}, {"first", it.First},
		{"produced", it.Produced}, {"aborted", ids(it.Aborted)}} {
		if len(part.ids) > 0 {
			fmt.Fprintf(&b, " %s%v", part.name, part.ids)
		}
	}
	for _, c := range it.Finished {
		fmt.Fprintf(&b, " finished[%d]", c.ID)
	}
	return b.String() + "\n"
}

func ids(losses []Loss) []ID {
	var all []ID
	for _, l := range losses {
		all = append(all, l.ID)
	}
	return all
}

func TestScheduler(t *testing.T) {
	tests := []struct {
		name     string
		config   Config
		requests []Request
		want     string
	}{
		{
			name:   "the first token comes with the end of the prefill",
			config: small(), requests: []Request{{ID: 1, Prompt: 5, Output: 3}},
			want: `
				15ms n=5 admitted[1] first[1] produced[1]
				11ms n=1 produced[1]
				11ms n=1 produced[1] finished[1]`,
		}, {
			name:   "a long prompt is computed in chunks of the budget",
			config: small(), requests: []Request{{ID: 1, Prompt: 150, Output: 1}},
			want: `
				74ms n=64 admitted[1]
				74ms n=64
				32ms n=22 first[1] produced[1] finished[1]`,
		}, {
			name:   "running requests go first, a chunk takes what is left",
			config: small(), requests: []Request{{ID: 1, Prompt: 4, Output: 3},
				{ID: 2, Prompt: 100, Output: 1}},
			want: `
				74ms n=64 admitted[1 2] first[1] produced[1]
				51ms n=41 first[2] produced[1 2] finished[2]
				11ms n=1 produced[1] finished[1]`,
		}, {
			name:   "priority before arrival",
			config: small(func(c *Config) { c.Profile.MaxSeqs = 1 }),
			requests: []Request{{ID: 1, Prompt: 1, Output: 1, Priority: 5},
				{ID: 2, Prompt: 1, Output: 1, Priority: -1},
				{ID: 3, Prompt: 1, Output: 1, Priority: 5}},
			want: `
				11ms n=1 admitted[2] first[2] produced[2] finished[2]
				11ms n=1 admitted[1] first[1] produced[1] finished[1]
				11ms n=1 admitted[3] first[3] produced[3] finished[3]`,
		}, {
			name:   "first come first served ignores priority",
			config: small(func(c *Config) { c.Profile.MaxSeqs, c.Scheduling = 1, FirstCome }),
			requests: []Request{{ID: 1, Prompt: 1, Output: 1, Priority: 5},
				{ID: 2, Prompt: 1, Output: 1, Priority: -1}},
			want: `
				11ms n=1 admitted[1] first[1] produced[1] finished[1]
				11ms n=1 admitted[2] first[2] produced[2] finished[2]`,
		}, {
			name:   "one who does not fit holds up those behind",
			config: small(func(c *Config) { c.Profile.KVTokens = 6 * BlockSize }),
			requests: []Request{{ID: 1, Prompt: 48, Output: 2}, {ID: 2, Prompt: 64, Output: 1},
				{ID: 3, Prompt: 1, Output: 1}},
			want: `
				58ms n=48 admitted[1] first[1] produced[1]
				11ms n=1 produced[1] finished[1]
				74ms n=64 admitted[2] first[2] produced[2] finished[2]
				11ms n=1 admitted[3] first[3] produced[3] finished[3]`,
		}, {
			// The second would fit into the four blocks left of a hundred, but two in a
			// hundred are kept.
			name: "a watermark of blocks stays free for those who run",
			config: small(func(c *Config) {
				c.Profile.KVTokens, c.Profile.MaxBatchedTokens = 100*BlockSize, 2000
			}),
			requests: []Request{{ID: 1, Prompt: 96 * BlockSize, Output: 2},
				{ID: 2, Prompt: 3 * BlockSize, Output: 1}},
			want: `
				1.546s n=1536 admitted[1] first[1] produced[1]
				11ms n=1 produced[1] finished[1]
				58ms n=48 admitted[2] first[2] produced[2] finished[2]`,
		}, {
			// Two requests of two full blocks each fill four of five blocks. The first to
			// grow takes the fifth, then the later request is the victim of the earlier.
			name:     "blocks short: the latest of the worst priority is computed again",
			config:   small(func(c *Config) { c.Profile.KVTokens = 5 * BlockSize }),
			requests: []Request{{ID: 1, Prompt: 31, Output: 4}, {ID: 2, Prompt: 31, Output: 4}},
			want: `
				72ms n=62 admitted[1 2] first[1 2] produced[1 2]
				12ms n=2 produced[1 2]
				11ms n=1 preempted[2] produced[1]
				11ms n=1 produced[1] finished[1]
				43ms n=33 admitted[2] produced[2]
				11ms n=1 produced[2] finished[2]`,
		}, {
			name:   "blocks short: the worse priority goes, though it came first",
			config: small(func(c *Config) { c.Profile.KVTokens = 5 * BlockSize }),
			requests: []Request{{ID: 1, Prompt: 32, Output: 3, Priority: 9},
				{ID: 2, Prompt: 31, Output: 3}},
			want: `
				73ms n=63 admitted[2 1] first[2 1] produced[2 1]
				12ms n=2 produced[2 1]
				11ms n=1 preempted[1] produced[2] finished[2]
				44ms n=34 admitted[1] produced[1] finished[1]`,
		}, {
			name:     "output stops at the context length",
			config:   small(func(c *Config) { c.MaxModelLen = 6 }),
			requests: []Request{{ID: 1, Prompt: 4, Output: 100}},
			want: `
				14ms n=4 admitted[1] first[1] produced[1]
				11ms n=1 produced[1] finished[1]`,
		}, {
			name:     "a run of decoding is one report",
			config:   small(func(c *Config) { c.MaxRun = 100 }),
			requests: []Request{{ID: 1, Prompt: 4, Output: 4}, {ID: 2, Prompt: 4, Output: 6}},
			want: `
				18ms n=8 admitted[1 2] first[1 2] produced[1 2]
				36ms n=2 produced[1 2] finished[1]
				22ms n=1 produced[2] finished[2]`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e := build(t, test.config, 1)
			submit(t, e, epoch, test.requests...)
			want := strings.ReplaceAll(strings.TrimPrefix(test.want, "\n"), "\t", "") + "\n"
			if diff := cmp.Diff(want, iterations(e)); diff != "" {
				t.Errorf("iterations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPrefixCache(t *testing.T) {
	prompt := []Hash{11, 12, 13}
	e := build(t, small(), 1)

	submit(t, e, epoch, Request{ID: 1, Prompt: 50, Output: 1, Prefix: prompt})
	if got, want := iterations(
		e), "60ms n=50 admitted[1] first[1] produced[1] finished[1]\n"; got != want {
		t.Errorf("cold: got %s want %s", got, want)
	}
	submit(t, e, epoch, Request{ID: 2, Prompt: 50, Output: 1, Prefix: prompt})
	if got, want := iterations(
		e), "12ms n=2 admitted[2] first[2] produced[2] finished[2]\n"; got != want {
		t.Errorf("warm: got %s want %s", got, want)
	}
	submit(t, e, epoch, Request{ID: 3, Prompt: 48, Output: 1, Prefix: prompt})
	if got, want := iterations(
		e), "26ms n=16 admitted[3] first[3] produced[3] finished[3]\n"; got != want {
		t.Errorf("a prompt that is cached completely computes its last block: got %s want %s", got,
			want)
	}
	s := e.Snapshot(epoch)
	if s.PrefixQueries != 148 || s.PrefixHits != 48+32 || s.KVBlocksUsed != 0 {
		t.Errorf("queries %d hits %d used %d, want 148, 80 and 0", s.PrefixQueries, s.PrefixHits,
			s.KVBlocksUsed)
	}
	if got := e.FlushCache(epoch); got != 3 {
		t.Errorf("flush removed %d blocks, want 3", got)
	}
	submit(t, e, epoch, Request{ID: 4, Prompt: 50, Output: 1, Prefix: prompt})
	if got, want := iterations(
		e), "60ms n=50 admitted[4] first[4] produced[4] finished[4]\n"; got != want {
		t.Errorf("flushed: got %s want %s", got, want)
	}
}

func TestPrefixCacheEvictsTheLeastRecentlyUsedFromItsEnd(t *testing.T) {
	e := build(t, small(func(c *Config) { c.Profile.KVTokens = 6 * BlockSize }), 1)
	submit(t, e, epoch, Request{ID: 1, Prompt: 49, Output: 1, Prefix: []Hash{1, 2, 3}})
	iterations(e)
	submit(t, e, epoch, Request{ID: 2, Prompt: 33, Output: 1, Prefix: []Hash{21, 22}})
	iterations(e)
	// Five blocks are cached; four more tokens' worth of blocks evict 3, 2 and 1.
	submit(t, e, epoch, Request{ID: 3, Prompt: 33, Output: 1})
	iterations(e)
	for h, want := range map[Hash]bool{1: true, 2: false, 3: false, 21: true, 22: true} {
		if _, got := e.kv.cache[h]; got != want {
			t.Errorf("block %d cached: %t, want %t", h, got, want)
		}
	}
}

func TestAbort(t *testing.T) {
	e := build(t, small(), 1)
	submit(t, e, epoch, Request{ID: 1, Prompt: 4, Output: 9}, Request{ID: 2, Prompt: 4, Output: 2})
	end, _ := e.Begin(epoch)
	submit(t, e, epoch, Request{ID: 3, Prompt: 4, Output: 2})
	if !e.Abort(epoch, 1) || !e.Abort(epoch, 3) || e.Abort(epoch, 1) || e.Abort(epoch, 7) {
		t.Error("Abort must return true only for known requests that are not aborted yet")
	}
	if s := e.Snapshot(epoch); s.Running != 2 || s.Waiting != 0 {
		t.Errorf("running %d, waiting %d: a running request must stay to the end of its iteration",
			s.Running, s.Waiting)
	}
	it := e.End()
	if got, want := describe(
		it), "18ms n=8 admitted[1 2] first[1 2] produced[1 2] aborted[1]\n"; got != want {
		t.Errorf("got %s want %s", got, want)
	}
	if len(it.Aborted) != 1 || it.Aborted[0].Tokens != 4 {
		t.Errorf("lost %+v, want the 4 tokens of the prompt", it.Aborted)
	}
	if e.Has(1) || !e.Has(2) || e.Has(3) {
		t.Error("want the running request known, and the removed ones not")
	}
	if s := e.Snapshot(end); s.Running != 1 || s.KVBlocksUsed != 1 || s.Aborted != 2 {
		t.Errorf("after the iteration: %+v", s)
	}
}

func TestSubmitRefuses(t *testing.T) {
	e := build(t, small(func(c *Config) { c.MaxModelLen = 100 }), 1)
	submit(t, e, epoch, Request{ID: 1, Prompt: 99, Output: 1})
	for _, r := range []Request{{ID: 2, Prompt: 100, Output: 1}, {ID: 1, Prompt: 1, Output: 1},
		{ID: 3, Output: 1}, {ID: 4, Prompt: 1}} {
		if err := e.Submit(epoch, r); err == nil {
			t.Errorf("accepted %+v", r)
		}
	}
}

func TestPaceAndStall(t *testing.T) {
	e := build(t, small(), 1)
	e.SetPace(epoch, 2)
	e.Stall(epoch, 200*time.Millisecond)
	submit(t, e, epoch, Request{ID: 1, Prompt: 5, Output: 2})
	want := "230ms n=5 admitted[1] first[1] produced[1]\n22ms n=1 produced[1] finished[1]\n"
	if got := iterations(e); got != want {
		t.Errorf("got %s want %s", got, want)
	}
}

// event is a request, an abort or a change of pace at an instant.
type event struct {
	at      time.Duration
	request Request
	abort   ID
	pace    float64
}

func events(t *rapid.T, model int) []event {
	var all []event
	at := time.Duration(0)
	for i := range rapid.IntRange(1, 40).Draw(t, "events") {
		at += time.Duration(rapid.IntRange(0, int(400*time.Millisecond)).Draw(t, "gap"))
		ev := event{at: at}
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			ev.abort = ID(rapid.IntRange(1, i+1).Draw(t, "abort"))
		case 1:
			ev.pace = rapid.Float64Range(0.5, 3).Draw(t, "pace")
		default:
			prompt := rapid.IntRange(1, model-1).Draw(t, "prompt")
			ev.request = Request{
				ID: ID(i + 1), Prompt: prompt, Output: rapid.IntRange(1, 2*model).Draw(t, "output"),
				Priority: rapid.IntRange(0, 2).Draw(t, "priority"),
			}
			// Prompts share prefixes by family, to different depths.
			family, depth := rapid.IntRange(1, 3).Draw(t, "family"),
				rapid.IntRange(0, prompt/BlockSize).Draw(t, "depth")
			for b := range depth {
				ev.request.Prefix = append(ev.request.Prefix, Hash(family*1000+b))
			}
		}
		all = append(all, ev)
	}
	return all
}

func tight(t *rapid.T) Config {
	c := small()
	c.Profile.KVTokens = BlockSize * rapid.IntRange(4, 40).Draw(t, "blocks")
	c.Profile.MaxSeqs = rapid.IntRange(1, 8).Draw(t, "seqs")
	c.Profile.MaxBatchedTokens = rapid.IntRange(c.Profile.MaxSeqs, 100).Draw(t, "budget")
	c.Noise = 0.01
	if rapid.Bool().Draw(t, "fcfs") {
		c.Scheduling = FirstCome
	}
	return c
}

// feed passes events to an engine, each report to onIteration, and calls check at each event and at
// the end.
func feed(t failer, e *Engine, all []event, onIteration func(*Iteration), check func(time.Time)) {
	far := epoch.Add(1000 * time.Hour)
	for _, ev := range all {
		now := epoch.Add(ev.at)
		e.Advance(now, onIteration)
		check(now)
		switch {
		case ev.abort != 0:
			e.Abort(now, ev.abort)
		case ev.pace != 0:
			e.SetPace(now, ev.pace)
		default:
			submit(t, e, now, ev.request)
		}
		e.Advance(now, onIteration)
	}
	e.Advance(far, onIteration)
	check(far)
}

// received counts the tokens and ends of a request in the reports.
type received struct {
	tokens, ended int
}

func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := tight(t)
		c.MaxRun = rapid.SampledFrom([]int{1, 7, 64}).Draw(t, "run")
		e, err := New(c, rand.New(rand.NewPCG(1, 0)))
		if err != nil {
			t.Fatal(err)
		}
		all := events(t, e.MaxModelLen())
		receivedBy := map[ID]*received{}
		get := func(id ID) *received {
			if receivedBy[id] == nil {
				receivedBy[id] = &received{}
			}
			return receivedBy[id]
		}
		wanted := map[ID]Request{}
		for _, ev := range all {
			if ev.request.ID != 0 {
				wanted[ev.request.ID] = ev.request
			}
		}
		produced, computed, useful, lost := uint64(0), 0, 0, 0
		onIteration := func(it *Iteration) {
			if it.Tokens < 1 || it.Tokens > c.Profile.MaxBatchedTokens || !it.End.After(it.Start) {
				t.Fatalf("iteration of %d tokens in %v", it.Tokens, it.End.Sub(it.Start))
			}
			for _, id := range it.Produced {
				get(id).tokens += len(it.Steps)
				produced += uint64(len(it.Steps))
			}
			computed += it.Tokens * len(it.Steps)
			for _, l := range slices.Concat(it.Preempted, it.Aborted) {
				if l.Tokens < 0 {
					t.Fatalf("request %d lost %d tokens", l.ID, l.Tokens)
				}
				lost += l.Tokens
			}
			for _, l := range it.Aborted {
				get(l.ID).ended++
			}
			for _, f := range it.Finished {
				get(f.ID).ended++
				useful += wanted[f.ID].Prompt - f.Cached + f.Output - 1
				want := min(wanted[f.ID].Output, e.MaxModelLen()-wanted[f.ID].Prompt)
				if f.Output != want || get(f.ID).tokens != want {
					t.Fatalf("request %d finished with %d tokens, %d reported, want %d", f.ID,
						f.Output, get(f.ID).tokens, want)
				}
				if f.Admitted.Before(f.Submitted) || !f.FirstToken.After(f.Admitted) ||
					f.Finished.Before(f.FirstToken) {
					t.Fatalf("times of request %d run backwards: %+v", f.ID, f)
				}
			}
		}
		check := func(now time.Time) {
			checkMemory(t, e)
			s := e.Snapshot(now)
			if s.KVBlocksUsed < 0 || s.KVBlocksUsed > s.KVBlocks || s.Running > c.Profile.MaxSeqs ||
				s.PendingTokens < 0 {
				t.Fatalf("snapshot out of bounds: %+v", s)
			}
		}
		feed(t, e, all, onIteration, check)

		s := e.Snapshot(epoch)
		if s.Running+s.Waiting+s.PendingTokens+s.KVBlocksUsed != 0 {
			t.Fatalf("not empty at the end: %+v", s)
		}
		if s.GeneratedTokens != produced {
			t.Fatalf("counted %d tokens, reported %d", s.GeneratedTokens, produced)
		}
		// Without a prefix cache, computed tokens are useful or lost.
		if !c.PrefixCaching && computed != useful+lost {
			t.Fatalf("computed %d tokens, %d useful and %d lost", computed, useful, lost)
		}
		if int(s.Finished+s.Aborted) != len(wanted) {
			t.Fatalf("%d finished and %d aborted of %d", s.Finished, s.Aborted, len(wanted))
		}
		for id, a := range receivedBy {
			if a.ended > 1 {
				t.Fatalf("request %d ended %d times", id, a.ended)
			}
		}
	})
}

// checkMemory compares the counts of memory with a count of everything in it.
func checkMemory(t *rapid.T, e *Engine) {
	private, refs := 0, map[Hash]int{}
	for _, s := range e.running {
		private += s.private
		for _, h := range s.Prefix[:s.shared] {
			refs[h]++
		}
		if s.blocks()*BlockSize < s.computed {
			t.Fatalf("request %d holds %d blocks for %d tokens", s.ID, s.blocks(), s.computed)
		}
	}
	idle := 0
	for h, i := range e.kv.cache {
		if node := e.kv.nodes[i]; node.hash != h || node.refs != refs[h] {
			t.Fatalf("block %d has %d references, counted %d", h, node.refs, refs[h])
		}
		if refs[h] == 0 {
			idle++
		}
	}
	ring := 0
	for i := e.kv.nodes[0].next; i != 0; i = e.kv.nodes[i].next {
		ring++
	}
	if private != e.kv.private || idle != e.kv.idle || ring != idle {
		t.Fatalf("private %d, idle %d, ring %d; counted %d and %d", e.kv.private, e.kv.idle, ring,
			private, idle)
	}
	if private+len(e.kv.cache) > e.kv.total {
		t.Fatalf("%d private and %d cached blocks of %d", private, len(e.kv.cache), e.kv.total)
	}
}

// A run of many iterations must give the same results as single steps, and the same seed the same
// log.
func TestRunsEqualSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := tight(t)
		model := blocksFor(c.Profile.KVTokens) * BlockSize
		all := events(t, model)
		seed := rapid.Uint64().Draw(t, "seed")
		log := func(maxRun int) []string {
			c.MaxRun = maxRun
			e, err := New(c, rand.New(rand.NewPCG(seed, 0)))
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			onIteration := func(it *Iteration) {
				for _, f := range it.Finished {
					lines = append(lines, fmt.Sprintf("%+v", f))
				}
				for _, id := range it.First {
					lines = append(lines, fmt.Sprintf("%v %d", it.End, id))
				}
				for _, l := range slices.Concat(it.Aborted, it.Preempted) {
					lines = append(lines, fmt.Sprintf("%v %+v", it.End, l))
				}
				for _, a := range it.Admitted {
					lines = append(lines, fmt.Sprintf("%v %+v", it.Start, a))
				}
			}
			feed(t, e, all, onIteration, func(now time.Time) {
				lines = append(lines, fmt.Sprintf("%+v %+v", e.Snapshot(now), e.TokenGaps(now)))
			})
			return lines
		}
		steps := log(1)
		if diff := cmp.Diff(steps, log(1)); diff != "" {
			t.Fatalf("the same seed gave another log:\n%s", diff)
		}
		for _, maxRun := range []int{2, 13, 1000} {
			if diff := cmp.Diff(steps, log(maxRun)); diff != "" {
				t.Fatalf("runs of up to %d differ from steps (-steps +runs):\n%s", maxRun, diff)
			}
		}
	})
}

func TestValidate(t *testing.T) {
	for _, p := range Profiles() {
		if err := DefaultConfig(p).Validate(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	if err := (Config{}).Validate(); err == nil {
		t.Error("the zero configuration is valid")
	}
}

// BenchmarkHour runs an engine for an hour with 64 requests that decode all the time.
func BenchmarkHour(b *testing.B) {
	for _, maxRun := range []int{1, 64} {
		b.Run(fmt.Sprintf("run=%d", maxRun), func(b *testing.B) {
			p, _ := ProfileNamed("llama-70b-a100")
			c := DefaultConfig(p)
			c.MaxRun = maxRun
			for b.Loop() {
				e := build(b, c, 1)
				rng := rand.New(rand.NewPCG(2, 0))
				next := ID(0)
				add := func(now time.Time) {
					next++
					submit(b, e, now, Request{ID: next, Prompt: 1 + rng.IntN(
						1000), Output: 1 + rng.IntN(500)})
				}
				for range 64 {
					add(epoch)
				}
				refill := func(it *Iteration) {
					for range it.Finished {
						add(it.End)
					}
				}
				e.Advance(epoch, refill)
				e.Advance(epoch.Add(time.Hour), refill)
				b.ReportMetric(float64(e.Snapshot(epoch).Iterations), "iterations/op")
			}
		})
	}
}
