package routing

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// beginnings returns the hashes of a prompt of n blocks of its own.
func beginnings(prompt uint64, n int) []uint64 {
	all := make([]uint64, n)
	for i := range all {
		all[i] = prompt<<20 | uint64(i)
	}
	return all
}

// pool returns idle candidates named a, b and so on, with the given work.
func pool(work ...float64) []Candidate {
	all := make([]Candidate, len(work))
	for i, w := range work {
		all[i] = Candidate{Runner: string(rune('a' + i)), Work: w, KVUsed: math.NaN()}
	}
	return all
}

// prompt is a request of 1,000 prompt tokens, ten blocks, which cost 100 ms; its answer costs 20.
func prompt(number uint64) Request {
	return Request{Work: 120, PromptWork: 100, PromptTokens: 1000, Prefix: beginnings(number, 10)}
}

func newTable() *Table { return New(Config{BlockTokens: 100}) }

func TestChoose(t *testing.T) {
	for _, test := range []struct {
		name       string
		candidates []Candidate
		request    Request
		sent       func(*Table)
		want       int
		cached     int
	}{
		{name: "nobody", want: -1},
		{name: "the least work", candidates: pool(300, 100, 200), request: prompt(1), want: 1},
		{name: "the least work, whatever the number of requests", want: 1, request: prompt(1),
			candidates: []Candidate{{Work: 300, Requests: 1}, {Work: 100, Requests: 9}}},
		{name: "the fewest requests, if the work is about equal", want: 1, request: prompt(1),
			candidates: []Candidate{{Work: 300, Requests: 9}, {Work: 311, Requests: 1}}},
		{name: "the work, if it differs by more", want: 0, request: prompt(1),
			candidates: []Candidate{{Work: 300, Requests: 9}, {Work: 313, Requests: 1}}},
		{name: "the cache, if it saves more than the wait", candidates: pool(0, 80, 0),
			request: prompt(1), want: 1, cached: 1000,
			sent: func(t *Table) { t.Sent("b", beginnings(1, 10)) }},
		{name: "not the cache, if the wait is longer", candidates: pool(0, 120, 0),
			request: prompt(1), want: 0,
			sent: func(t *Table) { t.Sent("b", beginnings(1, 10)) }},
		{name: "the longer beginning", candidates: pool(0, 0, 0), request: prompt(1), want: 2,
			cached: 700, sent: func(t *Table) {
				t.Sent("b", beginnings(1, 4))
				t.Sent("c", beginnings(1, 7))
			}},
		{name: "a part of the prompt saves a part of its work", candidates: pool(0, 45),
			request: prompt(1), want: 0,
			sent: func(t *Table) { t.Sent("b", beginnings(1, 3)) }},
		{name: "no beginning of another prompt", candidates: pool(0, 30), request: prompt(1),
			want: 0, sent: func(t *Table) {
				t.Sent("b", append([]uint64{7}, beginnings(1, 10)[1:]...))
				t.Sent("a", nil)
			}},
		{name: "of idle ones, the longest unused", candidates: pool(0, 0, 0), request: prompt(1),
			want: 1, sent: func(t *Table) {
				t.Sent("b", nil)
				t.Sent("a", nil)
				t.Sent("c", nil)
			}},
		{name: "of idle ones, one that was never used", candidates: pool(0, 0, 0),
			request: prompt(1), want: 2, sent: func(t *Table) {
				t.Sent("b", nil)
				t.Sent("a", nil)
			}},
		{name: "not where the KV cache is full", request: prompt(1), want: 1,
			candidates: []Candidate{{Work: 300, KVUsed: 0.99}, {Work: 400, KVUsed: 0.5}}},
		{name: "where it is full, if the others wait longer", request: prompt(1), want: 0,
			candidates: []Candidate{{Work: 300, KVUsed: 0.99}, {Work: 800, KVUsed: 0.5}}},
		{name: "not where others fill the KV cache", request: prompt(1), want: 1,
			candidates: []Candidate{{KVUsed: 1}, {Work: 50, KVUsed: 0.5}}},
		{name: "not where the prompt would fill the KV cache", request: prompt(1), want: 1,
			candidates: []Candidate{{Runner: "a", Work: 300, KVUsed: 0.5},
				{Runner: "b", Work: 400, KVUsed: 0.5}},
			sent: func(t *Table) { t.Limit("a", 2000) }},
		{name: "unknown KV use counts as room", request: prompt(1), want: 1,
			candidates: []Candidate{{Work: 300, KVUsed: 0.9}, {Work: 300, KVUsed: math.NaN()}}},
		{name: "unknown work is the last resort", request: prompt(1), want: 1,
			candidates: []Candidate{{Work: math.NaN()}, {Work: 1e9}}},
		{name: "someone, if nothing is known", request: prompt(1), want: 1, candidates: []Candidate{
			{Work: math.NaN(), Requests: 2, KVUsed: math.NaN()},
			{Work: math.NaN(), Requests: 1, KVUsed: math.NaN()}}},
		{name: "no cache for a prompt of unknown length", candidates: pool(0, 0),
			request: Request{Work: 10, PromptWork: 5, Prefix: beginnings(1, 2)}, want: 0,
			sent: func(t *Table) { t.Sent("b", beginnings(1, 2)) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			table := newTable()
			if test.sent != nil {
				test.sent(table)
			}
			got, cached := table.Choose(test.candidates, test.request)
			if got != test.want || cached != test.cached {
				t.Errorf("got %d with %d tokens in the cache, want %d with %d", got, cached,
					test.want, test.cached)
			}
		})
	}
}

// serve sends requests that stay, one after another, and counts those of each candidate.
func serve(t *Table, candidates []Candidate, requests ...Request) []int {
	counts := make([]int, len(candidates))
	for _, r := range requests {
		i, cached := t.Choose(candidates, r)
		candidates[i].Work += r.Work - r.Saved(cached)
		candidates[i].Requests++
		counts[i]++
		t.Sent(candidates[i].Runner, r.Prefix)
	}
	return counts
}

// A prompt that everybody sends ends up in every cache, and no runner is overloaded by it: the one
// with the most work has at most one whole prompt more than the one with the least.
func TestAHotPromptSpreads(t *testing.T) {
	table, candidates := newTable(), pool(0, 0, 0, 0)
	counts := serve(table, candidates, slices.Repeat([]Request{prompt(1)}, 200)...)
	for _, n := range counts {
		if n < 40 {
			t.Errorf("runners got %v of 200 requests, want about a quarter each", counts)
		}
	}
	least, most := math.Inf(1), 0.0
	for _, c := range candidates {
		least, most = min(least, c.Work), max(most, c.Work)
	}
	if slack := 100 + 1.1*120; most-least > slack {
		t.Errorf("work is %v to %v ms, want a difference of %v at most", least, most, slack)
	}
}

// Users whose prompts have nothing in common but a short beginning do not all go where the
// beginning is.
func TestACommonBeginningDoesNotAttractEverything(t *testing.T) {
	table, candidates := newTable(), pool(0, 0, 0, 0)
	var all []Request
	for user := range uint64(100) {
		r := prompt(user + 2)
		copy(r.Prefix, beginnings(1, 2))
		all = append(all, r)
	}
	for _, n := range serve(table, candidates, all...) {
		if n < 20 || n > 30 {
			t.Fatalf("a runner got %d of 100 requests, want about 25", n)
		}
	}
}

func TestARunnerThatJoinsGetsLoad(t *testing.T) {
	table, candidates := newTable(), pool(0, 0, 0)
	requests := slices.Repeat([]Request{prompt(1), prompt(2), prompt(3)}, 20)
	serve(table, candidates, requests...)
	candidates = append(candidates, Candidate{Runner: "new", KVUsed: math.NaN()})
	if counts := serve(table, candidates, requests[:12]...); counts[3] < 10 {
		t.Errorf("of 12 requests, a runner without load beside three busy ones got %d", counts[3])
	}
}

// Conversations of many turns stay where they began, and fill the pool evenly.
func TestConversationsStay(t *testing.T) {
	table, candidates := newTable(), pool(0, 0, 0, 0)
	home := map[uint64]int{}
	for turn := 1; turn <= 10; turn++ {
		for user := range uint64(20) {
			r := Request{Work: float64(100 * turn), PromptWork: float64(90 * turn),
				PromptTokens: 1000 * turn, Prefix: beginnings(user, 10*turn)}
			i, cached := table.Choose(candidates, r) // all are idle again
			table.Sent(candidates[i].Runner, r.Prefix)
			if turn == 1 {
				home[user] = i
			} else if i != home[user] || cached != 1000*(turn-1) {
				t.Fatalf("turn %d of user %d went to %d with %d tokens in the cache, want %d, %d",
					turn, user, i, cached, home[user], 1000*(turn-1))
			}
		}
	}
	counts := make([]int, len(candidates))
	for _, i := range home {
		counts[i]++
	}
	if slices.Min(counts) != 5 {
		t.Errorf("of 20 conversations runners have %v, want 5 each", counts)
	}
}

func TestWhatAnEngineEvictedIsForgotten(t *testing.T) {
	table := newTable()
	table.Limit("a", 2500) // 25 blocks: two prompts and a half
	for number := range uint64(3) {
		table.Sent("a", beginnings(number, 10))
	}
	for number, want := range []int{500, 1000, 1000} {
		if _, cached := table.Choose(pool(0), prompt(uint64(number))); cached != want {
			t.Errorf("of prompt %d, %d tokens are expected, want %d", number, cached, want)
		}
	}
	table.Limit("a", 1000)
	if _, cached := table.Choose(pool(0), prompt(1)); cached != 0 || table.Len() != 10 {
		t.Errorf("in a smaller cache, %d tokens of the older prompt are left, of %d blocks",
			cached, table.Len())
	}
	table.Forget("a")
	if _, cached := table.Choose(pool(0), prompt(2)); cached != 0 || table.Len() != 0 {
		t.Errorf("after a restart, %d tokens are expected, of %d blocks", cached, table.Len())
	}
}

// Prompts that no one repeats fill the table, but displace the blocks of their own runner only.
func TestAFloodKeepsTheTableBounded(t *testing.T) {
	table := New(Config{BlockTokens: 100, Blocks: 1000})
	table.Sent("b", beginnings(1, 10))
	for number := range uint64(2000) {
		table.Sent("a", beginnings(number+2, 10))
		if table.Len() > 1000 {
			t.Fatalf("the table has %d blocks, want 1000 at most", table.Len())
		}
	}
	table.Sent("a", beginnings(9, 5000)) // longer than the table
	if i, cached := table.Choose(pool(0, 0), prompt(1)); i != 1 || cached != 1000 ||
		table.Len() != 1000 {
		t.Errorf("after a flood of another runner, got runner %d with %d tokens, of %d blocks", i,
			cached, table.Len())
	}
	if len(table.nodes) > 1000+3 || len(table.groups[0]) > 1000 {
		t.Errorf("it holds %d nodes and %d hashes", len(table.nodes), len(table.groups[0]))
	}
}

// Runners come and go, and there are more than a word of bits holds.
func TestManyRunners(t *testing.T) {
	table := newTable()
	for round := range 3 {
		var candidates []Candidate
		for i := range 150 {
			name := fmt.Sprintf("%d-%d", round, i)
			candidates = append(candidates, Candidate{Runner: name, KVUsed: math.NaN()})
			table.Sent(name, beginnings(uint64(i+1), 10))
		}
		for i := range candidates {
			r := prompt(uint64(i + 1))
			if got, cached := table.Choose(candidates, r); got != i || cached != 1000 {
				t.Fatalf("prompt %d: got %d with %d tokens", i, got, cached)
			}
		}
		for i, c := range candidates {
			if table.Forget(c.Runner); i%2 == 0 {
				table.Forget(c.Runner)
			}
		}
	}
	if len(table.bySlot) > 150 || table.Len() != 0 || len(table.nodes) > 150*11+1 {
		t.Errorf("%d slots, %d blocks and %d nodes are left", len(table.bySlot), table.Len(),
			len(table.nodes))
	}
}

func TestChooseAllocatesNothing(t *testing.T) {
	table, candidates, r := busy()
	table.Choose(candidates, r)
	if n := testing.AllocsPerRun(100, func() { table.Choose(candidates, r) }); n != 0 {
		t.Errorf("Choose allocates %v times", n)
	}
}

// busy returns a pool of 64 runners that all know a system prompt, and have 1,000 blocks each. The
// request has 40 blocks, of which 24 are in one cache.
func busy() (*Table, []Candidate, Request) {
	table := New(Config{BlockTokens: 256})
	candidates := make([]Candidate, 64)
	for i := range candidates {
		candidates[i] = Candidate{Runner: fmt.Sprintf("http://runner-%d:8000", i),
			Work: float64(1000 + i*7919%500), Requests: i % 7, KVUsed: 0.5}
		table.Limit(candidates[i].Runner, 500_000)
		for number := range uint64(25) {
			prefix := beginnings(uint64(i)<<10|number, 40)
			copy(prefix, beginnings(1<<30, 8))
			table.Sent(candidates[i].Runner, prefix)
		}
	}
	r := Request{Work: 900, PromptWork: 700, PromptTokens: 10_300,
		Prefix: beginnings(17<<10|3, 40)}
	copy(r.Prefix, beginnings(1<<30, 8))
	for i := 24; i < 40; i++ {
		r.Prefix[i] = 1<<40 | uint64(i)
	}
	return table, candidates, r
}

func BenchmarkChoose(b *testing.B) {
	table, candidates, r := busy()
	b.ReportAllocs()
	for b.Loop() {
		table.Choose(candidates, r)
	}
}

func BenchmarkSent(b *testing.B) {
	table, candidates, r := busy()
	number := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		number++
		for i := 8; i < len(r.Prefix); i++ {
			r.Prefix[i] = 1<<50 | number<<8 | uint64(i)
		}
		table.Sent(candidates[number%64].Runner, r.Prefix)
	}
}
