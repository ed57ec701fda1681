package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tidefill/tidefill/internal/portable"
)

// GeneratorConfig configures a generator.
type GeneratorConfig struct {
	Population Population
	// Shape of the rate over time; nil is constant.
	Shape *Curve
	// Rate is what the shape multiplies, in requests a second; 0: the population's.
	Rate float64
	Seed Seed
	// Name makes generators of one scenario independent.
	Name string
}

// Generator generates traffic of a population without end. The variance of its counts over the mean
// is the population's at any higher mean rate, as with more users of the same kind, and nearer 1 at
// a lower one, as with a part of them.
type Generator struct {
	cfg   GeneratorConfig
	copy  int
	scale float64 // of the variance of the rate components
}

// NewGenerator validates the configuration.
func NewGenerator(cfg GeneratorConfig) (*Generator, error) {
	if cfg.Shape == nil {
		cfg.Shape = flat()
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
	for _, s := range cfg.Population.RateComponents {
		if !(s.Variance >= 0 && s.Variance <= 1e3) || s.Memory <= 0 {
			return nil, fmt.Errorf(
				"generator %q: rate component of variance %v and memory %v: want a variance of 0 "+
					"or more and a memory above 0", cfg.Name,
				s.Variance, s.Memory)
		}
	}
	return &Generator{cfg: cfg, scale: min(1, cfg.Population.Rate/cfg.Rate)}, nil
}

// Rate returns the requested rate at t, in requests a second.
func (g *Generator) Rate(t time.Duration) float64 { return g.cfg.Rate * g.cfg.Shape.At(t) }

// Arrivals returns the traffic, from the beginning with each call. It does not end.
func (g *Generator) Arrivals() Stream {
	name := "generator " + g.cfg.Name + "/"
	p := g.cfg.Population
	clock := &cox{
		rate:       g.Rate,
		step:       rateStep,
		multiplier: rateNoise(p.RateComponents, g.scale, g.cfg.Seed.Rand(name+"swells")),
		rng:        g.cfg.Seed.Rand(name + "arrivals"),
	}
	lengths := g.cfg.Seed.Rand(name + "lengths")
	var history *history
	if p.Reuse != nil {
		history = newHistory(*p.Reuse, g.cfg.Seed.Rand(name+"reuse"))
	}
	return offsetPrefixes(Func(func() (Arrival, bool) {
		at, ok := clock.next()
		if !ok {
			return Arrival{}, false
		}
		a := Arrival{At: at, Request: Request{Input: p.Input.draw(lengths), Output: p.Output.draw(
			lengths)}}
		if history != nil {
			history.assignPrefix(&a)
		}
		return a, true
	}), uint64(g.copy)<<copyBits)
}

// Independent returns traffic of the same kind that is independent of Arrivals and of other
// numbers, for [AddSurges].
func (g *Generator) Independent(number int) Stream {
	other := *g
	other.cfg.Name = fmt.Sprintf("%s/crowd %d", g.cfg.Name, number)
	other.copy = number + 1
	return other.Arrivals()
}

// rateStep is the time for which a rate is constant: well below the shortest memory.
const rateStep = 500 * time.Millisecond

// rateNoise returns the product of log-normal processes with mean 1, step by step.
func rateNoise(components []RateComponent, scale float64, rng *rand.Rand) func() float64 {
	type process struct{ deviation, keep, fresh, state float64 }
	processes := make([]process, len(components))
	middle := 0.0
	for i, s := range components {
		variance := portable.Log(1 + s.Variance*scale) // of the logarithm
		keep := portable.Exp(-rateStep.Seconds() / s.Memory.Seconds())
		processes[i] = process{math.Sqrt(variance), keep,
			math.Sqrt(1 - keep*keep),
			normal(rng)}
		middle -= variance / 2
	}
	return func() float64 {
		sum := middle
		for i := range processes {
			p := &processes[i]
			p.state = p.keep*p.state + p.fresh*normal(rng)
			sum += p.deviation * p.state
		}
		return portable.Exp(sum)
	}
}
