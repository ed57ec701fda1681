package scenario

import (
	"errors"
	"slices"

	"github.com/tidefill/tidefill/simulator/workload"
)

// Interactive is the traffic that comes first.
type Interactive struct {
	// Generator names bundled traffic: conversation or long-conversation. Empty where Trace is given.
	Generator string `yaml:"generator"`
	// Rate is the generator's mean, in requests a second. 0: that of the traffic it was fitted to.
	Rate float64 `yaml:"rate"`
	// Trace is a recorded file, from the scenario's folder, told once as it was.
	Trace string `yaml:"trace"`
	// Format is the trace's: azure, mooncake or csv.
	Format workload.Format `yaml:"format"`
	SLO    SLO             `yaml:"slo"`
}

func (i Interactive) validate() error {
	var all faults
	switch {
	case i.Generator == "" && i.Trace == "":
		all.check(false, "interactive.generator is empty, and so is interactive.trace; give one of them")
	case i.Generator != "" && i.Trace != "":
		all.check(false, "interactive.trace is given beside interactive.generator; keep one")
	case i.Generator != "":
		_, err := workload.LookupPopulation(i.Generator)
		all.check(err == nil, "interactive.generator: %w", err)
		all.check(i.Format == "", "interactive.format is of a trace, and there is none; remove it")
	default:
		all.check(slices.Contains(workload.Formats, i.Format), "interactive.format is %q, want one of %q", i.Format, workload.Formats)
		all.check(i.Rate == 0, "interactive.rate is of a generator; a trace has its own, remove it")
	}
	all.check(i.Rate >= 0 && i.Rate <= mostRate, "interactive.rate is %v requests a second, want 0 for the generator's own or up to %d", i.Rate, mostRate)
	return errors.Join(append(all, i.SLO.validate())...)
}
