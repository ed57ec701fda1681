package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tidefill/tidefill/internal/portable"
)

// Population is what is known of a kind of interactive traffic, enough to make
// more of it.
type Population struct {
	Name string
	// Rate of the traffic that was measured, requests a second.
	Rate float64
	// Swells make its rate move; none leaves a Poisson process.
	Swells []Swell
	// Input and Output are the tokens of a request, drawn independently: in both
	// traces their rank correlation is 0.07.
	Input, Output Quantiles
	// Reuse of prefixes between the turns of conversations; nil for none known.
	Reuse *Reuse
}

// Swell is a component of the movement of a rate: log-normal about its mean, with
// an exponential memory.
type Swell struct {
	Variance float64 // of the rate over its mean, at the population's own rate
	Memory   time.Duration
}

// Conversation is chat with short prompts, after the Azure conversation trace of
// 2023 (CC BY 4.0; Patel et al., Splitwise, ISCA 2024).
//
// One hour, mean of 20 seeds, beside the trace (go test -run Fit -v):
//
//	                                 trace                    here
//	requests a second                5.53                     5.40
//	var/mean over 1, 10, 60 s        1.4, 3.9, 16             1.4, 4.0, 16
//	input tokens, 10, 50, 90, 99 %   207, 1020, 2734, 4142    207, 1020, 2734, 4142
//	output tokens, 10, 50, 90, 99 %  54, 129, 424, 601        53, 129, 424, 601
//	mean tokens in, out              1155, 211                1185, 211
func Conversation() Population {
	return Population{
		Name: "conversation",
		Rate: 5.53,
		Swells: []Swell{
			{Variance: 0.026, Memory: 2 * time.Second},
			{Variance: 0.066, Memory: 400 * time.Second},
		},
		Input:  quantiles(2, 29, 207, 396, 1020, 1189, 2734, 4083, 4142, 14050),
		Output: quantiles(7, 16, 54, 85, 129, 395, 424, 451, 601, 1000),
	}
}

// LongConversation is chat with long prompts that repeat their history, after the
// Mooncake conversation trace (Apache-2.0; Qin et al., Mooncake, FAST 2025), with
// requests spread inside its ticks.
//
// One hour, mean of 20 seeds, beside the trace (go test -run Fit -v):
//
//	                                 trace                    here
//	requests a second                3.40                     3.37
//	var/mean over 1, 10, 60 s        1.04, 1.5, 2.9           1.05, 1.5, 2.9
//	input tokens, 10, 50, 90, 99 %   964, 6909, 27367, 85400  965, 6923, 27410, 85150
//	output tokens, 10, 50, 90, 99 %  24, 350, 597, 1118       24, 348, 596, 1117
//	mean tokens in, out              12035, 343               12240, 336
//	blocks seen before               0.366                    0.353
//	prompts that go on               0.387                    0.411
func LongConversation() Population {
	return Population{
		Name: "long-conversation",
		Rate: 3.40,
		Swells: []Swell{
			{Variance: 0.014, Memory: 20 * time.Second},
			{Variance: 0.0055, Memory: 600 * time.Second},
		},
		Input:  quantiles(891, 894, 964, 2306, 6909, 15367, 27367, 39550, 85400, 126195),
		Output: quantiles(1, 3, 24, 156, 350, 472, 597, 698, 1118, 2000),
		Reuse: &Reuse{
			Segment: 512,
			Common:  1,
			Share:   0.50,
			Short:   2000, ShortShare: 0.20,
			Kept: shares(0.03, 0.06, 0.29, 0.52, 0.80, 0.93, 0.97, 0.985, 1, 1),
			Gap:  quantiles(6, 12, 42, 66, 123, 264, 483, 700, 1473, 1800),
		},
	}
}

// Populations are those that come with the package.
var Populations = []func() Population{Conversation, LongConversation}

// LookupPopulation finds one by its name.
func LookupPopulation(name string) (Population, error) {
	var names []string
	for _, p := range Populations {
		if p().Name == name {
			return p(), nil
		}
		names = append(names, p().Name)
	}
	return Population{}, fmt.Errorf("unknown population %q of interactive traffic, want one of %q",
		name, names)
}

// GeneratorConfig says what traffic to generate.
type GeneratorConfig struct {
	Population Population
	// Shape of the rate over time; nil is flat.
	Shape *Curve
	// Rate is what the shape multiplies, in requests a second; 0 takes the
	// population's.
	Rate float64
	Seed Seed
	// Name tells generators of one scenario apart.
	Name string
}

// Generator makes traffic of a population without end. Variance over mean of its
// counts is the population's at any higher mean rate, as with more users of the
// same kind, and nearer 1 at a lower one, as with a part of them.
type Generator struct {
	cfg   GeneratorConfig
	copy  int
	scale float64 // of the variance of swells
}

// NewGenerator checks what is asked.
func NewGenerator(cfg GeneratorConfig) (*Generator, error) {
	if cfg.Shape == nil {
		cfg.Shape = Flat()
	}
	if cfg.Rate == 0 {
		cfg.Rate = cfg.Population.Rate
	}
	if !(cfg.Rate > 0 && cfg.Rate <= maxRate) || !(cfg.Population.Rate > 0) {
		return nil, fmt.Errorf(
			"generator %q: rate is %v requests a second, want a finite number above 0", cfg.Name,
			cfg.Rate)
	}
	if len(cfg.Population.Input.share) == 0 || len(cfg.Population.Output.share) == 0 {
		return nil, fmt.Errorf("generator %q: population %q has no lengths of input or output",
			cfg.Name, cfg.Population.Name)
	}
	if r := cfg.Population.Reuse; r != nil && (r.Segment < 1 || len(r.Gap.share) == 0 ||
		len(r.Kept.permille.share) == 0) {
		return nil, fmt.Errorf(
			"generator %q: the reuse of population %q lacks its segment, its gaps or what is kept",
			cfg.Name, cfg.Population.Name)
	}
	for _, s := range cfg.Population.Swells {
		if !(s.Variance >= 0 && s.Variance <= 1e3) || s.Memory <= 0 {
			return nil, fmt.Errorf(
				"generator %q: swell of variance %v and memory %v: want neither negative", cfg.Name,
				s.Variance, s.Memory)
		}
	}
	return &Generator{cfg: cfg, scale: min(1, cfg.Population.Rate/cfg.Rate)}, nil
}

// Rate is what was asked for at t, in requests a second.
func (g *Generator) Rate(t time.Duration) float64 { return g.cfg.Rate * g.cfg.Shape.At(t) }

// Arrivals tells the traffic; each call tells the same again. It does not end.
func (g *Generator) Arrivals() Stream {
	name := "generator " + g.cfg.Name + "/"
	p := g.cfg.Population
	clock := &cox{
		rate: g.Rate,
		step: swellStep,
		pace: swelling(p.Swells, g.scale, g.cfg.Seed.Cause(name+"swells")),
		rng:  g.cfg.Seed.Cause(name + "arrivals"),
	}
	lengths := g.cfg.Seed.Cause(name + "lengths")
	var history *history
	if p.Reuse != nil {
		history = newHistory(*p.Reuse, g.cfg.Seed.Cause(name+"reuse"))
	}
	return named(Func(func() (Arrival, bool) {
		at, ok := clock.next()
		if !ok {
			return Arrival{}, false
		}
		a := Arrival{At: at, Request: Request{Input: p.Input.draw(lengths), Output: p.Output.draw(
			lengths)}}
		if history != nil {
			history.turn(&a)
		}
		return a, true
	}), uint64(g.copy)<<copyBits)
}

// Surge tells the like once more, independent of the first and of other crowds,
// for [Flash].
func (g *Generator) Surge(crowd int) Stream {
	other := *g
	other.cfg.Name = fmt.Sprintf("%s/crowd %d", g.cfg.Name, crowd)
	other.copy = crowd + 1
	return other.Arrivals()
}

// swellStep is how long a rate stands still: well below the shortest memory.
const swellStep = 500 * time.Millisecond

// swelling is the product of log-normal processes with mean 1, step by step.
func swelling(swells []Swell, scale float64, rng *rand.Rand) func() float64 {
	type process struct{ deviation, keep, fresh, state float64 }
	processes := make([]process, len(swells))
	middle := 0.0
	for i, s := range swells {
		variance := portable.Log(1 + float64(s.Variance*scale)) // of the logarithm
		keep := portable.Exp(-swellStep.Seconds() / s.Memory.Seconds())
		processes[i] = process{math.Sqrt(variance), keep, math.Sqrt(1 - float64(keep*keep)),
			normal(rng)}
		middle -= float64(variance / 2)
	}
	return func() float64 {
		sum := middle
		for i := range processes {
			p := &processes[i]
			p.state = float64(p.keep*p.state) + float64(p.fresh*normal(rng))
			sum += float64(p.deviation * p.state)
		}
		return portable.Exp(sum)
	}
}
