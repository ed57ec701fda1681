package workload

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tidefill/tidefill/internal/portable"
)

// Kind is a kind of batch job: the distribution of its lines.
type Kind struct {
	Name  string
	Parts []Part // each line is of one, by weight
}

// Part is one of a kind's sorts of lines.
type Part struct {
	Weight        float64
	Input, Output Length
	// Shared is the share of a prompt that is the same for all lines of this part of a job.
	Shared float64
}

// Length is a log-normal count of tokens, at least 1.
type Length struct {
	Median float64
	Sigma  float64 // of the logarithm; 0: all are equal
	Max    int     // longer ones are cut to it; 0: no bound
}

func (l Length) draw(rng *rand.Rand) int {
	x := l.Median
	if l.Sigma > 0 {
		x *= portable.Exp(l.Sigma * normal(rng))
	}
	most := maxTokens
	if l.Max > 0 {
		most = l.Max
	}
	return max(1, int(math.Round(min(x, float64(most)))))
}

// Validate reports what is wrong with a kind.
func (k Kind) Validate() error {
	total := 0.0
	for i, p := range k.Parts {
		for _, l := range []Length{p.Input, p.Output} {
			if !(l.Median >= 1 && l.Median <= maxTokens) || !(l.Sigma >= 0 && l.Sigma <= 10) ||
				l.Max < 0 {
				return fmt.Errorf(
					"job kind %q: part %d: length %+v: want a median from 1, a sigma from 0 to 10 "+
						"and no negative bound", k.Name, i+1, l)
			}
		}
		if !(p.Weight >= 0 && p.Weight <= maxRate) || !(p.Shared >= 0 && p.Shared <= 1) {
			return fmt.Errorf(
				"job kind %q: part %d: weight %v and shared %v: want no negative weight and a "+
					"share from 0 to 1", k.Name, i+1, p.Weight, p.Shared)
		}
		total += p.Weight
	}
	if total == 0 {
		return fmt.Errorf("job kind %q: no part has a weight", k.Name)
	}
	return nil
}

var (
	generation = Part{Weight: 1, Input: Length{Median: 55, Sigma: 0.4},
		Output: Length{Median: 1500, Sigma: 1.1, Max: 6144}}
	scoring  = Part{Weight: 1, Input: Length{Median: 707}, Output: Length{Median: 5}}
	balanced = Part{Weight: 2, Input: Length{Median: 700, Sigma: 0.8, Max: 8000},
		Output: Length{Median: 200, Sigma: 0.7, Max: 2000}}
)

// Kinds returns the bundled kinds: gen (short prompts, long answers), score (answers of a few
// tokens), score-shared (the same with nearly all of the prompt shared), bal (in between), mix
// (lines of gen, score and bal, one to one to two).
func Kinds() []Kind {
	shared := scoring
	shared.Shared = 0.95
	return []Kind{
		{"gen", []Part{generation}},
		{"score", []Part{scoring}},
		{"score-shared", []Part{shared}},
		{"bal", []Part{balanced}},
		{"mix", []Part{generation, scoring, balanced}},
	}
}

// LookupKind returns a bundled kind by its name.
func LookupKind(name string) (Kind, error) {
	var names []string
	for _, k := range Kinds() {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return Kind{}, fmt.Errorf("unknown job kind %q, want one of %q", name, names)
}

// choose returns the index of a weight, drawn with a probability proportional to it.
func choose(rng *rand.Rand, count int, weight func(int) float64) int {
	total := 0.0
	for i := range count {
		total += weight(i)
	}
	rest := rng.Float64() * total
	for i := range count - 1 {
		if rest -= weight(i); rest < 0 {
			return i
		}
	}
	return count - 1
}
