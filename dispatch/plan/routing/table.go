package routing

import (
	"math"
	"math/bits"
	"sort"
)

// Config sizes a Table.
type Config struct {
	// BlockTokens is the number of prompt tokens that a hash of Request.Prefix adds to the one
	// before it, min 1. If blocks are cut from bytes, it is their expected number of tokens.
	BlockTokens int
	// Blocks is the max number of blocks that the table keeps, of all runners together, min 1. A
	// block takes about 70 bytes. 0: DefaultBlocks.
	Blocks int
}

// DefaultBlocks is enough for 64 runners with a KV cache of 500,000 tokens each, in blocks of 256
// tokens. The table takes 9 MB then.
const DefaultBlocks = 1 << 17

// Table knows which beginnings of prompts each runner has computed lately, and has probably kept in
// its KV cache. It forgets as engines do: once a runner has as many blocks as Limit allows, the one
// that was used least recently. If the table itself is full, the runner with the most blocks loses
// one, so a busy runner does not displace the others. A block is forgotten after those that
// continue it.
//
// Two prompts with the same hash share a block in the table, though not in an engine. One of them
// is then expected to cost less than it does, and nothing else follows. Whoever sends many
// different prompts displaces the blocks of others in the table, as in the engines.
//
// Its zero value is not ready; use New. It belongs to one goroutine.
type Table struct {
	cfg     Config
	runners map[string]*runner
	bySlot  []*runner // nil: the slot is free
	groups  []group   // of 64 slots each
	nodes   []node    // of all runners
	spare   int32     // first of the unused nodes, which next links; 0: none
	blocks  int       // in all runners
	sends   uint64

	// Of Choose: what is found about each candidate, the runner of the candidate that came at an
	// index last time, and the number of blocks that the runner of each slot has of the prompt.
	choices []choice
	guesses []*runner
	depth   []int32
}

// group maps a hash to the runners of 64 slots that have its block, one bit for each.
type group map[uint64]uint64

// runner holds the blocks of one runner in the order of their last use.
type runner struct {
	name   string
	slot   int
	blocks map[uint64]int32 // index into nodes, by hash
	ring   int32            // node without a block: next is the oldest block, prev the newest
	limit  int              // of blocks; 0: none but the table's
	sent   uint64           // number of its last request among all
}

type node struct {
	hash       uint64
	prev, next int32
}

// New returns an empty table.
func New(cfg Config) *Table {
	cfg.BlockTokens = max(1, cfg.BlockTokens)
	if cfg.Blocks <= 0 {
		cfg.Blocks = DefaultBlocks
	}
	cfg.Blocks = min(cfg.Blocks, math.MaxInt32/2) // nodes have an index of 32 bits
	return &Table{cfg: cfg, runners: map[string]*runner{}, nodes: make([]node, 1)}
}

// Limit sets the capacity of a runner's KV cache in tokens, so that the table forgets what the
// engine has evicted. 0: it is unknown.
func (t *Table) Limit(name string, tokens int) {
	r := t.runner(name)
	if r.limit = 0; tokens > 0 {
		r.limit = max(1, tokens/t.cfg.BlockTokens)
	}
	for r.limit > 0 && len(r.blocks) > r.limit {
		t.evict(r)
	}
}

// Sent records that a request with this prefix was sent to a runner, whose cache holds its blocks
// from now on.
func (t *Table) Sent(name string, prefix []uint64) {
	r := t.runner(name)
	t.sends++
	r.sent = t.sends
	most := t.cfg.Blocks
	if r.limit > 0 {
		most = min(most, r.limit)
	}
	// The beginning is used last, so that it is forgotten last.
	for i := min(len(prefix), most) - 1; i >= 0; i-- {
		t.use(r, prefix[i])
	}
}

// Forget removes a runner that has left or was restarted, with its limit.
func (t *Table) Forget(name string) {
	r := t.runners[name]
	if r == nil {
		return
	}
	for len(r.blocks) > 0 {
		t.evict(r)
	}
	t.free(r.ring)
	delete(t.runners, name)
	t.bySlot[r.slot] = nil
	for i, g := range t.guesses {
		if g == r {
			t.guesses[i] = nil
		}
	}
}

// Len returns the number of blocks in the table.
func (t *Table) Len() int { return t.blocks }

// runner returns the runner with a name, and adds it if it is new.
func (t *Table) runner(name string) *runner {
	if r := t.runners[name]; r != nil {
		return r
	}
	slot := 0
	for slot < len(t.bySlot) && t.bySlot[slot] != nil {
		slot++
	}
	r := &runner{name: name, slot: slot, blocks: map[uint64]int32{}, ring: t.take()}
	t.nodes[r.ring] = node{prev: r.ring, next: r.ring}
	if slot == len(t.bySlot) {
		t.bySlot, t.depth = append(t.bySlot, nil), append(t.depth, 0)
	}
	t.bySlot[slot] = r
	if slot/64 == len(t.groups) {
		t.groups = append(t.groups, group{})
	}
	t.runners[name] = r
	return r
}

// use makes a block the most recently used one of a runner.
func (t *Table) use(r *runner, hash uint64) {
	n, known := r.blocks[hash]
	if known {
		t.unlink(n)
	} else {
		if r.limit > 0 && len(r.blocks) >= r.limit {
			t.evict(r)
		} else if t.blocks >= t.cfg.Blocks {
			t.evict(t.largest())
		}
		n = t.take()
		r.blocks[hash] = n
		t.groups[r.slot/64][hash] |= 1 << (r.slot % 64)
		t.blocks++
	}
	newest := t.nodes[r.ring].prev
	t.nodes[n] = node{hash: hash, prev: newest, next: r.ring}
	t.nodes[newest].next, t.nodes[r.ring].prev = n, n
}

// largest returns the runner with the most blocks, the first by slot among equals.
func (t *Table) largest() *runner {
	var most *runner
	for _, r := range t.bySlot {
		if r != nil && (most == nil || len(r.blocks) > len(most.blocks)) {
			most = r
		}
	}
	return most
}

// evict forgets the oldest block of a runner that has one.
func (t *Table) evict(r *runner) {
	n := t.nodes[r.ring].next
	hash := t.nodes[n].hash
	t.unlink(n)
	t.free(n)
	delete(r.blocks, hash)
	t.blocks--
	g := t.groups[r.slot/64]
	if left := g[hash] &^ (1 << (r.slot % 64)); left != 0 {
		g[hash] = left
	} else {
		delete(g, hash)
	}
}

func (t *Table) unlink(n int32) {
	x := t.nodes[n]
	t.nodes[x.prev].next, t.nodes[x.next].prev = x.next, x.prev
}

// take returns an unused node.
func (t *Table) take() int32 {
	n := t.spare
	if n == 0 {
		t.nodes = append(t.nodes, node{})
		return int32(len(t.nodes) - 1)
	}
	t.spare = t.nodes[n].next
	return n
}

func (t *Table) free(n int32) {
	t.nodes[n] = node{next: t.spare}
	t.spare = n
}

// measure sets depth, the number of leading blocks of a prefix that each runner has.
//
// A runner that has a block has all before it, so along the prefix runners only drop out. measure
// searches the places where some do, which takes few look-ups where most blocks are unknown, known
// to one runner, or known to all.
func (t *Table) measure(prefix []uint64) {
	clear(t.depth)
	for g, holders := range t.groups {
		have := ^uint64(0)
		for from := 0; from < len(prefix); {
			have &= holders[prefix[from]]
			if have == 0 {
				break
			}
			// All of have hold the blocks before next.
			rest := prefix[from+1:]
			next := from + 1
			if len(rest) > 0 && have&^holders[rest[len(rest)-1]] == 0 {
				next = len(prefix)
			} else {
				next += sort.Search(len(rest), func(i int) bool {
					return have&^holders[rest[i]] != 0
				})
			}
			gone := have
			if next < len(prefix) {
				gone &^= holders[prefix[next]]
			}
			for ; gone != 0; gone &= gone - 1 {
				t.depth[64*g+bits.TrailingZeros64(gone)] = int32(next)
			}
			from = next
		}
	}
}

// lookUp returns the runner of the candidate at an index; nil: nothing is known of it. Candidates
// mostly come in the same order, so it tries what it found there last time before it searches.
func (t *Table) lookUp(index int, name string) *runner {
	if index >= len(t.guesses) {
		t.guesses = append(t.guesses, make([]*runner, index+1-len(t.guesses))...)
	}
	if g := t.guesses[index]; g != nil && g.name == name {
		return g
	}
	r := t.runners[name]
	t.guesses[index] = r
	return r
}
