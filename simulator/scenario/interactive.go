package scenario

import (
	"errors"
	"slices"

	"github.com/tidefill/tidefill/simulator/workload"
)

// Interactive is the interactive traffic.
type Interactive struct {
	// Generator names bundled traffic: conversation or long-conversation; none for a pool that has
	// batch work alone. Empty where Trace is given.
	Generator string `yaml:"generator"`
	// Rate is the mean, in requests a second. 0: a generator's is that of the traffic that it was
	// fitted to; a trace is played back once, or with its own rate if there is a shape. With a rate
	// or a shape a trace is rotated, repeated, overlaid and thinned to that rate.
	Rate float64 `yaml:"rate"`
	// Trace is a recorded file, relative to the scenario's folder.
	Trace string `yaml:"trace"`
	// Format is the trace's: azure, mooncake or csv.
	Format  workload.Format `yaml:"format"`
	Traffic `yaml:",inline"`
	// Users make the generator's requests a closed loop.
	Users Users `yaml:"users"`
	SLO   SLO   `yaml:"slo"`
	// Flow is that of the requests without a class, where they pass through Tidefill.
	Flow Flow `yaml:"flow" json:",omitzero"`
	// SLOWithheld keeps the objectives of all classes from the policy, as where an operator has not
	// configured any; runs are judged by them all the same.
	SLOWithheld bool `yaml:"slo_withheld"`
	// Classes are further traffic, each with an SLO of its own.
	Classes []Class `yaml:"classes"`
}

// None is the Generator of a pool without interactive traffic.
const None = "none"

// Comes reports whether there are interactive requests.
func (i Interactive) Comes() bool { return i.Generator != None || len(i.Classes) > 0 }

// Verbatim reports whether the trace is played back once, unchanged in time.
func (i Interactive) Verbatim() bool { return i.Trace != "" && i.Rate == 0 && i.Shape == "" }

// StrictestSLO returns the lowest TTFT and TPOT of all classes of traffic.
func (i Interactive) StrictestSLO() SLO {
	slo := i.SLO
	for _, c := range i.All() {
		slo.TTFT, slo.TPOT = min(slo.TTFT, c.SLO.TTFT), min(slo.TPOT, c.SLO.TPOT)
	}
	return slo
}

func (i Interactive) validate() error {
	var all problems
	switch {
	case i.Generator == "" && i.Trace == "":
		all.check(
			false, "interactive.generator is empty, and so is interactive.trace; give one of them")
	case i.Generator != "" && i.Trace != "":
		all.check(false, "interactive.trace is given beside interactive.generator; keep one")
	case i.Generator == None:
		all.check(i.Rate == 0 && i.Shape == "" && i.Traffic.unmodified(),
			"interactive.generator is none, so there is no traffic to describe; remove the other "+
				"keys of interactive but slo")
	case i.Generator != "":
		_, err := workload.LookupPopulation(i.Generator)
		all.check(err == nil, "interactive.generator: %w", err)
		all.check(i.Format == "", "interactive.format is of a trace, and there is none; remove it")
	default:
		all.check(slices.Contains(workload.Formats, i.Format),
			"interactive.format is %q, want one of %q", i.Format, workload.Formats)
	}
	all.check(i.Rate >= 0 && i.Rate <= maxRate,
		"interactive.rate is %v requests a second, want 0 for the generator's own or up to %d",
		i.Rate, maxRate)
	all.check(i.Users.Count == 0 || i.Trace == "" && i.Generator != None && i.Rate == 0 &&
		i.timeIndependent(),
		"interactive.users ask when they will, so there is a generator for their requests, and no "+
			"trace, rate, shape, dispersion, surges, growth or cold_cache")
	all.check(i.Bursts == Bursts{} || !i.Verbatim(),
		"interactive.bursts is given, but the trace keeps its own times; give interactive.rate")
	all.add("interactive.users", i.Users.validate())
	all.add("interactive.slo", i.SLO.validate())
	return errors.Join(append(all, i.validateClasses())...)
}

// timeIndependent reports whether nothing about the traffic depends on the time of requests.
func (i Interactive) timeIndependent() bool {
	return i.Shape == "" && i.Dispersion == Dispersion{} && len(i.Surges) == 0 &&
		i.Growth == Growth{} && i.ColdCache == ColdCache{}
}
