package routing

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// slow is an obvious table: the blocks of each runner by their last use, the oldest first.
type slow struct {
	cfg    Config
	blocks map[string][]uint64
	limits map[string]int
}

func (s *slow) len() int {
	n := 0
	for _, b := range s.blocks {
		n += len(b)
	}
	return n
}

func (s *slow) sent(name string, prefix []uint64) {
	prefix = prefix[:min(len(prefix), s.cfg.Blocks)]
	if l := s.limits[name]; l > 0 {
		prefix = prefix[:min(len(prefix), l)]
	}
	for _, hash := range slices.Backward(prefix) {
		own := s.blocks[name]
		if i := slices.Index(own, hash); i >= 0 {
			own = slices.Delete(own, i, i+1)
		} else if l := s.limits[name]; l > 0 && len(own) == l {
			own = own[1:]
		} else if s.len() == s.cfg.Blocks {
			victim := ""
			for _, other := range names { // in the order of their slots
				if n := len(s.blocks[other]); n > 0 && (victim == "" ||
					n > len(s.blocks[victim])) {
					victim = other
				}
			}
			s.blocks[victim] = s.blocks[victim][1:]
			own = s.blocks[name]
		}
		s.blocks[name] = append(own, hash)
	}
}

func (s *slow) depth(name string, prefix []uint64) int {
	for i, hash := range prefix {
		if !slices.Contains(s.blocks[name], hash) {
			return i
		}
	}
	return len(prefix)
}

var names = []string{"a", "b", "c", "d", "e"}

// drawPrefix draws the beginning of a prompt from a tree with three branches at each block.
func drawPrefix(t *rapid.T) []uint64 {
	prefix, name := []uint64{}, uint64(1)
	for _, branch := range rapid.SliceOfN(rapid.Uint64Range(0, 2), 0, 9).Draw(t, "prefix") {
		name = 4*name + branch
		prefix = append(prefix, name)
	}
	return prefix
}

// The table agrees with the slow one, the choice is one that costs at most a tenth of the request
// more than the cheapest, and no equal one has fewer requests.
func TestTableAndChoiceAgreeWithSlowOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{BlockTokens: 10, Blocks: rapid.IntRange(1, 40).Draw(t, "blocks")}
		table := New(cfg)
		other := &slow{cfg, map[string][]uint64{}, map[string]int{}}
		for _, name := range names { // so that slots are in this order
			table.Limit(name, 0)
		}
		name := rapid.SampledFrom(names)
		t.Repeat(map[string]func(*rapid.T){
			"sent": func(t *rapid.T) {
				to, prefix := name.Draw(t, "to"), drawPrefix(t)
				table.Sent(to, prefix)
				other.sent(to, prefix)
			},
			"forget": func(t *rapid.T) {
				gone := name.Draw(t, "gone")
				table.Forget(gone)
				table.Limit(gone, 0) // takes its slot again
				other.blocks[gone], other.limits[gone] = nil, 0
			},
			"limit": func(t *rapid.T) {
				of, limit := name.Draw(t, "of"), rapid.IntRange(0, 12).Draw(t, "limit")
				table.Limit(of, limit*cfg.BlockTokens)
				if other.limits[of] = limit; limit > 0 {
					b := other.blocks[of]
					other.blocks[of] = b[max(0, len(b)-limit):]
				}
			},
			"": func(t *rapid.T) {
				if table.Len() != other.len() || table.Len() > cfg.Blocks {
					t.Fatalf("%d blocks, want %d, %d at most", table.Len(), other.len(),
						cfg.Blocks)
				}
				checkChoice(t, table, other, drawPrefix(t))
			},
		})
	})
}

func checkChoice(t *rapid.T, table *Table, other *slow, prefix []uint64) {
	r := Request{Prefix: prefix, PromptTokens: 10*len(prefix) + 3}
	r.PromptWork = rapid.Float64Range(0, 100).Draw(t, "prompt work")
	r.Work = r.PromptWork + rapid.Float64Range(0, 100).Draw(t, "answer work")
	candidates := make([]Candidate, len(names))
	costs, least := make([]float64, len(names)), math.Inf(1)
	for i, of := range rapid.Permutation(names).Draw(t, "order") {
		c := Candidate{Runner: of, Requests: rapid.IntRange(0, 3).Draw(t, "requests")}
		c.Work = rapid.Float64Range(0, 300).Draw(t, "work")
		c.KVUsed = rapid.SampledFrom([]float64{math.NaN(), 0, 0.5}).Draw(t, "kv")
		candidates[i] = c
		cached := 10 * other.depth(of, prefix)
		costs[i] = c.Work - r.PromptWork*float64(cached)/float64(r.PromptTokens)
		if kv := c.KVUsed + float64(r.PromptTokens-cached)/float64(10*other.limits[of]); kv >
			fullFrom && other.limits[of] > 0 {
			costs[i] += (min(kv, 1) - fullFrom) / (1 - fullFrom) * (c.Work + r.Work)
		}
		least = min(least, costs[i])
	}
	got, cached := table.Choose(candidates, r)
	if want := 10 * other.depth(candidates[got].Runner, prefix); cached != want {
		t.Fatalf("%d tokens are expected, want %d", cached, want)
	}
	const rounding = 1e-9
	if costs[got] > least+0.1*r.Work+rounding {
		t.Fatalf("chose %d of costs %v for work of %v", got, costs, r.Work)
	}
	for i, cost := range costs {
		if cost < least+0.1*r.Work-rounding && candidates[i].Requests < candidates[got].Requests {
			t.Fatalf("chose %d, but %d has fewer requests at costs %v", got, i, costs)
		}
	}
	if again, _ := table.Choose(candidates, r); again != got {
		t.Fatalf("chose %d, then %d", got, again)
	}
}

// FuzzTable feeds a table anything, hashes that contradict each other included. It stays within its
// bounds, answers with a candidate, and answers the same as another with the same past.
func FuzzTable(f *testing.F) {
	f.Add([]byte{3, 0, 1, 2, 3, 1, 1, 2, 9, 2, 3, 40, 3, 1, 2, 3, 4})
	f.Add([]byte{1, 0, 5, 5, 5, 5, 4, 0, 0, 255, 3, 5, 5, 1})
	f.Add(slices.Repeat([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 30))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		cfg := Config{BlockTokens: int(data[0] % 8), Blocks: int(data[0])}
		x, y := New(cfg), New(cfg)
		bound := cfg.Blocks
		if bound == 0 {
			bound = DefaultBlocks
		}
		for data = data[1:]; len(data) > 2; {
			kind, name, n := data[0]%5, names[int(data[1])%len(names)], int(data[2])
			data = data[3:]
			prefix := make([]uint64, min(n, len(data)))
			for i := range prefix {
				prefix[i] = uint64(data[i])
			}
			data = data[min(len(prefix), n%7, len(data)):]
			for _, table := range []*Table{x, y} {
				switch kind {
				case 0, 1:
					table.Sent(name, prefix)
				case 2:
					table.Limit(name, 10*n)
				case 3:
					table.Forget(name)
				}
			}
			var candidates []Candidate
			for i, name := range names[:n%len(names)+1] {
				odd := math.Float64frombits(binary.LittleEndian.Uint64(append(make([]byte, 8),
					prefixBytes(prefix)...)[len(prefix):]))
				candidates = append(candidates, Candidate{Runner: name, Requests: i,
					Work: odd, KVUsed: float64(n) / float64(i)})
			}
			r := Request{Work: float64(n - 9), PromptWork: 3, PromptTokens: n - 3, Prefix: prefix}
			i, cached := x.Choose(candidates, r)
			j, also := y.Choose(candidates, r)
			if i != j || cached != also {
				t.Fatalf("chose %d with %d tokens, and %d with %d", i, cached, j, also)
			}
			if i < 0 || i >= len(candidates) || cached < 0 || cached > max(0, r.PromptTokens) {
				t.Fatalf("chose %d of %d, with %d of %d tokens", i, len(candidates), cached,
					r.PromptTokens)
			}
			if x.Len() > bound || len(x.nodes) > bound+len(names)+1 {
				t.Fatalf("%d blocks and %d nodes, want %d at most", x.Len(), len(x.nodes), bound)
			}
		}
	})
}

// prefixBytes returns a byte for each hash.
func prefixBytes(prefix []uint64) []byte {
	all := make([]byte, len(prefix))
	for i, hash := range prefix {
		all[i] = byte(hash)
	}
	return all
}
