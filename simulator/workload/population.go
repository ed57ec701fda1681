package workload

import (
	"fmt"
	"time"
)

// Population describes a kind of interactive traffic well enough to generate more of it.
type Population struct {
	Name string
	// Rate of the measured traffic, in requests a second.
	Rate float64
	// RateComponents vary its rate; without any it is a Poisson process.
	RateComponents []RateComponent
	// Input and Output are the tokens of a request, drawn independently: in both
	// traces their rank correlation is 0.07.
	Input, Output Quantiles
	// Reuse of prefixes between the turns of conversations; nil: not known.
	Reuse *Reuse
}

// RateComponent is a component of the variation of a rate: log-normal about its mean, with an
// exponential autocorrelation.
type RateComponent struct {
	Variance float64 // of the rate relative to its mean, at the population's own rate
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
		RateComponents: []RateComponent{
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
		RateComponents: []RateComponent{
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

// Populations lists the bundled populations.
var Populations = []func() Population{Conversation, LongConversation}

// LookupPopulation returns a bundled population by its name.
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
