package workload

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Reuse describes how prompts repeat earlier ones. A prompt either starts a conversation or is the
// next turn of one. It then begins with all of the earlier prompt.
type Reuse struct {
	Segment int // tokens that one name identifies
	Common  int // leading segments that all prompts share (a system prompt)
	// Share of prompts that are a next turn; ShortShare of those under Short tokens.
	Share, ShortShare float64
	Short             int
	Kept              Shares    // the earlier prompt, as a share of a next turn's prompt
	Gap               Quantiles // seconds between the turns
}

// Shares is a distribution of shares by its quantiles.
type Shares struct{ permille Quantiles }

func (s Shares) draw(rng *rand.Rand) float64 { return s.permille.At(rng.Float64()) / 1000 }

// shares takes values at the same quantiles as the function quantiles.
func shares(values ...float64) Shares {
	permille := make([]float64, len(values))
	for i, v := range values {
		permille[i] = math.Round(v * 1000)
	}
	return Shares{quantiles(permille...)}
}

// conversation is the last turn of a conversation that may continue.
type conversation struct {
	id     uint64
	at     time.Duration
	tokens int // of its last prompt; 0: it has continued with another
}

// history holds the conversations that may continue, in order of their last turn.
type history struct {
	reuse   Reuse
	rng     *rand.Rand
	oldest  time.Duration
	open    []conversation
	started uint64
}

const (
	// conversationBits are the bits of a name for the segment within its conversation; those above
	// identify the conversation, up to copyBits.
	conversationBits = 16
	// searchWidth is the number of conversations on each side that are searched for one of fitting
	// length. The search begins at the one whose last turn was the drawn gap ago.
	searchWidth = 128
)

func newHistory(reuse Reuse, rng *rand.Rand) *history {
	oldest := time.Duration(reuse.Gap.At(1) * float64(time.Second))
	return &history{reuse: reuse, rng: rng, oldest: oldest}
}

// assignPrefix names the prefix of a prompt and remembers it.
func (h *history) assignPrefix(a *Arrival) {
	for len(h.open) > 0 && h.open[0].at < a.At-h.oldest {
		h.open = h.open[1:]
	}
	share := h.reuse.Share
	if a.Input < h.reuse.Short {
		share = h.reuse.ShortShare
	}
	id := uint64(0)
	if h.rng.Float64() < share {
		id = h.resume(a)
	}
	if id == 0 {
		h.started++
		id = h.started
	}
	h.open = append(h.open, conversation{id, a.At, a.Input})

	a.Segment = h.reuse.Segment
	a.Prefix = make([]uint64, min((a.Input+a.Segment-1)/a.Segment, 1<<conversationBits))
	for i := range a.Prefix {
		if i < h.reuse.Common {
			a.Prefix[i] = uint64(i)
		} else {
			a.Prefix[i] = id<<conversationBits | uint64(i)
		}
	}
}

// resume returns the conversation that fits a prompt best: about the drawn time ago, about the
// drawn share of the prompt long, and no longer than it. 0: none.
func (h *history) resume(a *Arrival) uint64 {
	gap := time.Duration(h.reuse.Gap.At(h.rng.Float64()) * float64(time.Second))
	wanted := int(h.reuse.Kept.draw(h.rng) * float64(a.Input))
	centre, _ := slices.BinarySearchFunc(h.open, a.At-gap,
		func(c conversation, t time.Duration) int {
			return cmp.Compare(c.at, t)
		})
	best := -1
	for i := max(0, centre-searchWidth); i < min(len(h.open), centre+searchWidth); i++ {
		c := h.open[i]
		if c.tokens > 0 && c.tokens <= a.Input &&
			(best < 0 || distance(c.tokens, wanted) < distance(h.open[best].tokens, wanted)) {
			best = i
		}
	}
	if best < 0 {
		return 0
	}
	h.open[best].tokens = 0
	return h.open[best].id
}

func distance(a, b int) int { return max(a-b, b-a) }
