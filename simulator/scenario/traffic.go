package scenario

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/simulator/workload"
)

// Traffic transforms the requests of a generator or a trace, in the order of its fields.
type Traffic struct {
	// Shape varies the rate over time: diurnal (day and night), wandering (irregular from day to
	// day), or a CSV file of rates, relative to the scenario's folder. Empty: constant.
	Shape string `yaml:"shape"`
	// ShapeColumn is the file's column.
	ShapeColumn string `yaml:"shape_column"`
	// Surges are periods with a multiple of the traffic.
	Surges []Surge `yaml:"surges"`
	// Dispersion replaces the times of the requests by those of another process with the same rate.
	Dispersion Dispersion `yaml:"dispersion"`
	// Bursts are random periods with a multiple of the traffic. They replace the times of the
	// requests too, and let users of a closed loop think faster.
	Bursts Bursts `yaml:"bursts"`
	// Input and Output are the tokens of a generator's requests. Default: those of the traffic that
	// it was fitted to.
	Input  Length `yaml:"input"`
	Output Length `yaml:"output"`
	// Growth makes prompts longer from one time to another.
	Growth Growth `yaml:"growth"`
	// Prefix gives prompts a common beginning.
	Prefix Prefix `yaml:"prefix"`
	// ColdCache removes prefixes from prompts, so that none is found in a cache.
	ColdCache ColdCache `yaml:"cold_cache"`
}

// Length is a log-normal number of tokens.
type Length struct {
	// Median of the number. 0: the length is unchanged.
	Median float64 `yaml:"median"`
	// Sigma is the standard deviation of its logarithm. 0: all are equal.
	Sigma float64 `yaml:"sigma"`
	// Max bounds longer ones. 0: no bound.
	Max int `yaml:"max"`
}

// Dispersion is how uneven arrivals are.
type Dispersion struct {
	// VarMean is the variance of the counts of arrivals over Window, divided by their mean. 0: the
	// times are unchanged; 1: a Poisson process.
	VarMean float64       `yaml:"var_mean"`
	Window  time.Duration `yaml:"window"`
}

// Bursts are exponential periods with more traffic, after exponential pauses. The mean rate over
// both stays that of the scenario.
type Bursts struct {
	// Factor of the rate in a burst, relative to that between bursts. 0: no bursts.
	Factor float64 `yaml:"factor"`
	// Length is the mean of a burst, and Gap that of the pause before one.
	Length time.Duration `yaml:"length"`
	Gap    time.Duration `yaml:"gap"`
}

// Surge is a period with more traffic.
type Surge struct {
	At     time.Duration `yaml:"at"`
	For    time.Duration `yaml:"for"`
	Factor float64       `yaml:"factor"`
}

// Growth multiplies the lengths of prompts by a factor that increases from 1 to Factor.
type Growth struct {
	From time.Duration `yaml:"from"`
	To   time.Duration `yaml:"to"`
	// Factor from To on. 0: prompts are unchanged.
	Factor float64 `yaml:"factor"`
}

// Prefix is the part that prompts have in common.
type Prefix struct {
	// Share of each prompt that is the same in its group. 0: prefixes are unchanged.
	Share float64 `yaml:"share"`
	// Groups of prompts, with equal probability. At least 1.
	Groups int `yaml:"groups"`
}

// ColdCache gives a share of prompts a new beginning: from 0 at From to Share at To, and Share
// after that.
type ColdCache struct {
	From  time.Duration `yaml:"from"`
	To    time.Duration `yaml:"to"`
	Share float64       `yaml:"share"`
}

// The bundled shapes.
const (
	Diurnal   = "diurnal"
	Wandering = "wandering"
)

// ShapeFile returns the file that Shape names, if it names one.
func (t Traffic) ShapeFile() (name string, ok bool) {
	return t.Shape, t.Shape != "" && t.Shape != Diurnal && t.Shape != Wandering
}

// Retimed reports whether the times of requests are drawn anew.
func (t Traffic) Retimed() bool { return t.Dispersion.VarMean > 0 || t.Bursts.Factor > 0 }

// unmodified reports whether requests stay as they are.
func (t Traffic) unmodified() bool {
	return t.Input == Length{} && t.Output == Length{} && t.Dispersion == Dispersion{} &&
		t.Bursts == Bursts{} && len(t.Surges) == 0 &&
		t.Growth == Growth{} && t.Prefix == Prefix{} && t.ColdCache == ColdCache{}
}

func (t Traffic) validate(generated bool, horizon time.Duration) error {
	var all problems
	for _, l := range []struct {
		key string
		Length
	}{{"input", t.Input}, {"output", t.Output}} {
		all.check(generated || l.Length == Length{},
			"interactive.%s is of a generator; a trace has its own lengths, remove it", l.key)
		all.add("interactive."+l.key, l.validate())
	}
	_, file := t.ShapeFile()
	all.check(file || t.ShapeColumn == "",
		"interactive.shape_column is of a file of rates, and interactive.shape names none; remove "+
			"it")
	all.check(!file || t.ShapeColumn != "",
		"interactive.shape_column is empty; name the column of %s, or write %s or %s as the shape",
		t.Shape, Diurnal, Wandering)
	if d := t.Dispersion; d != (Dispersion{}) {
		all.check(d.VarMean >= 1 && d.VarMean <= 1e4,
			"interactive.dispersion.var_mean is %v, want 1 (no memory) to 10000", d.VarMean)
		all.check(d.Window >= 100*time.Millisecond && d.Window <= time.Hour,
			"interactive.dispersion.window is %s, want 100ms to 1h", d.Window)
	}
	if b := t.Bursts; b != (Bursts{}) {
		all.check(b.Factor > 1 && b.Factor <= maxFactor,
			"interactive.bursts.factor is %v, want above 1 and at most %d", b.Factor, maxFactor)
		all.check(b.Length >= 100*time.Millisecond && b.Length <= 24*time.Hour,
			"interactive.bursts.length is %s, want 100ms to 24h", b.Length)
		all.check(b.Gap >= 100*time.Millisecond && b.Gap <= 24*time.Hour,
			"interactive.bursts.gap is %s, want 100ms to 24h", b.Gap)
	}
	for i, s := range t.Surges {
		path := fmt.Sprintf("interactive.surges[%d]", i)
		all.checkSpan(path, s.At, s.For, horizon)
		all.check(s.Factor >= 1 && s.Factor <= maxFactor, "%s.factor is %v, want 1 to %d", path,
			s.Factor, maxFactor)
	}
	if g := t.Growth; g != (Growth{}) {
		all.checkRamp("interactive.growth", g.From, g.To, horizon)
		all.check(g.Factor > 0 && g.Factor <= 1000,
			"interactive.growth.factor is %v, want above 0 and at most 1000", g.Factor)
	}
	if p := t.Prefix; p != (Prefix{}) {
		all.check(p.Share > 0 && p.Share <= 1,
			"interactive.prefix.share is %v, want above 0 and at most 1", p.Share)
		all.check(p.Groups >= 0 && p.Groups <= 1e6,
			"interactive.prefix.groups is %d, want 1 to 1000000", p.Groups)
	}
	if c := t.ColdCache; c != (ColdCache{}) {
		all.checkRamp("interactive.cold_cache", c.From, c.To, horizon)
		all.check(c.Share > 0 && c.Share <= 1,
			"interactive.cold_cache.share is %v, want above 0 and at most 1", c.Share)
	}
	return errors.Join(all...)
}

const maxFactor = 64

func (l Length) validate() error {
	var all problems
	if l == (Length{}) {
		return nil
	}
	all.check(l.Median >= 1 && l.Median <= 1e6, "median is %v, want 1 to 1000000 tokens", l.Median)
	all.check(l.Sigma >= 0 && l.Sigma <= 5, "sigma is %v, want 0 to 5", l.Sigma)
	all.check(l.Max >= 0, "max is %d, want 0 for no bound or more", l.Max)
	return errors.Join(all...)
}

// Workload converts the length for package workload.
func (l Length) Workload() workload.Length {
	return workload.Length{Median: l.Median, Sigma: l.Sigma, Max: l.Max}
}

// until leaves out what lies beyond a horizon.
func (t Traffic) until(horizon time.Duration) Traffic {
	var surges []Surge
	for _, s := range t.Surges {
		if s.At < horizon {
			s.For = min(s.For, horizon-s.At)
			surges = append(surges, s)
		}
	}
	t.Surges = surges
	if t.Growth.To > horizon {
		t.Growth = Growth{}
	}
	if t.ColdCache.To > horizon {
		t.ColdCache = ColdCache{}
	}
	return t
}
