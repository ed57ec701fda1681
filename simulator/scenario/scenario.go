package scenario

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/workload"
)

// Scenario is one story, told the same for every policy. Start from Default.
type Scenario struct {
	// Name is what the results are called by.
	Name string `yaml:"name"`
	// About says in a sentence what the scenario is for.
	About string `yaml:"about"`
	// Horizon is how long the story lasts. Requests that arrive in its first and last minute are not judged.
	Horizon time.Duration `yaml:"horizon"`

	Pool        Pool        `yaml:"pool"`
	Interactive Interactive `yaml:"interactive"`
	// Jobs are the batches, in any order.
	Jobs []Job `yaml:"jobs"`
}

// Pool is the replicas that share the traffic.
type Pool struct {
	// Profile is a bundled profile's name, or a file that profile fit has written, from the scenario's folder.
	Profile string `yaml:"profile"`
	// Replicas is how many engines there are.
	Replicas int `yaml:"replicas"`
	// Scheduling is the engine's waiting queue: priority (interactive first) or fcfs.
	Scheduling engine.Scheduling `yaml:"scheduling"`
	// PrefixCaching keeps the KV blocks of prompts that begin alike.
	PrefixCaching bool `yaml:"prefix_caching"`
	// Noise is the standard deviation of the logarithm of an iteration's time.
	Noise float64 `yaml:"noise"`
	// KVTokens, MaxBatchedTokens and MaxSeqs are the engine's limits. 0: the profile's.
	KVTokens         int `yaml:"kv_tokens"`
	MaxBatchedTokens int `yaml:"max_batched_tokens"`
	MaxSeqs          int `yaml:"max_seqs"`
	// ShedAbove is the number of waiting requests from which an engine answers batch lines with 503. 0: it queues without end.
	ShedAbove int `yaml:"shed_above"`
	// Network is what a batch line's way to the engine takes, and its answer's way back.
	Network time.Duration `yaml:"network"`
}

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

// SLO is what an interactive user is promised. A request attains it if both times hold.
type SLO struct {
	// TTFT is the longest time to the first token for a prompt of at most TTFTPrompt tokens.
	TTFT time.Duration `yaml:"ttft"`
	// TTFTPrompt is the prompt length from which more time is allowed.
	TTFTPrompt int `yaml:"ttft_prompt"`
	// TTFTPer1K is that time, for each further 1,000 tokens of prompt.
	TTFTPer1K time.Duration `yaml:"ttft_per_1k"`
	// TPOT is the longest mean time between the tokens of a request after its first.
	TPOT time.Duration `yaml:"tpot"`
	// Attainment is the share of requests that must attain the SLO without any batch work for the scenario to be valid. A pool
	// that misses its promise by itself tells nothing of a policy. 0.99; 0.97 for flash crowds, and no less.
	Attainment float64 `yaml:"attainment"`
}

// FirstToken is the longest time to first token for a prompt.
func (s SLO) FirstToken(prompt int) time.Duration {
	beyond := time.Duration(max(0, prompt-s.TTFTPrompt))
	return s.TTFT + beyond/1000*s.TTFTPer1K + beyond%1000*s.TTFTPer1K/1000
}

// Job is a batch that a user hands in.
type Job struct {
	Name string `yaml:"name"`
	// Kind of its lines: gen, score, score-shared, bal or mix.
	Kind string `yaml:"kind"`
	// At is when it comes.
	At time.Duration `yaml:"at"`
	// Window is the time from then to its deadline, at which it expires. 0: no deadline.
	Window time.Duration `yaml:"window"`
	// Lines is how many it has. 0: more than anyone can do.
	Lines int `yaml:"lines"`
}

// Edge is how much of a run's beginning and end is not judged: a pool that fills
// up and requests whose end is not seen say nothing of a policy.
const Edge = time.Minute

// Default is what a file need not say.
func Default() Scenario {
	return Scenario{
		Horizon: time.Hour,
		Pool:    Pool{Scheduling: engine.ByPriority, PrefixCaching: true, Noise: 0.01, Network: 20 * time.Millisecond},
		Interactive: Interactive{SLO: SLO{
			TTFT: 2 * time.Second, TTFTPrompt: 4000, TTFTPer1K: 200 * time.Millisecond, TPOT: 100 * time.Millisecond, Attainment: 0.99,
		}},
	}
}

// What a file may ask for at most, so that a slip of the finger is told at once
// and not after a day of computing.
const (
	mostReplicas = 1000
	longest      = 31 * 24 * time.Hour
	mostLines    = 50_000 // of a batch of the OpenAI API
	mostRate     = 10_000
)

// Validate reports every fault, each beginning with the path of its key.
func (s Scenario) Validate() error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	check(s.Name != "", "name is empty; results are called by it")
	check(s.Horizon > 2*Edge && s.Horizon <= longest, "horizon is %s, want more than %s, since the first and last minute are not judged, and at most %s", s.Horizon, 2*Edge, longest)

	p := s.Pool
	check(p.Profile != "", "pool.profile is empty; name a bundled profile (see tidefill profile list) or a fitted file")
	check(p.Replicas >= 1 && p.Replicas <= mostReplicas, "pool.replicas is %d, want 1 to %d", p.Replicas, mostReplicas)
	check(p.Scheduling == engine.ByPriority || p.Scheduling == engine.FirstCome, "pool.scheduling is %q, want %q or %q", p.Scheduling, engine.ByPriority, engine.FirstCome)
	check(p.Noise >= 0 && p.Noise <= 1, "pool.noise is %v, want 0 to 1", p.Noise)
	check(p.KVTokens >= 0, "pool.kv_tokens is %d, want 0 for the profile's or more", p.KVTokens)
	check(p.MaxBatchedTokens >= 0, "pool.max_batched_tokens is %d, want 0 for the profile's or more", p.MaxBatchedTokens)
	check(p.MaxSeqs >= 0, "pool.max_seqs is %d, want 0 for the profile's or more", p.MaxSeqs)
	check(p.ShedAbove >= 0, "pool.shed_above is %d, want 0 for never or more", p.ShedAbove)
	check(p.Network >= 0 && p.Network <= time.Minute, "pool.network is %s, want 0 to %s", p.Network, time.Minute)

	faults = append(faults, s.Interactive.validate(), validateJobs(s.Jobs))
	return errors.Join(faults...)
}

func (i Interactive) validate() error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	switch {
	case i.Generator == "" && i.Trace == "":
		check(false, "interactive.generator is empty, and so is interactive.trace; give one of them")
	case i.Generator != "" && i.Trace != "":
		check(false, "interactive.trace is given beside interactive.generator; keep one")
	case i.Generator != "":
		_, err := workload.LookupPopulation(i.Generator)
		check(err == nil, "interactive.generator: %w", err)
		check(i.Format == "", "interactive.format is of a trace, and there is none; remove it")
	default:
		check(slices.Contains(workload.Formats, i.Format), "interactive.format is %q, want one of %q", i.Format, workload.Formats)
		check(i.Rate == 0, "interactive.rate is of a generator; a trace has its own, remove it")
	}
	check(i.Rate >= 0 && i.Rate <= mostRate, "interactive.rate is %v requests a second, want 0 for the generator's own or up to %d", i.Rate, mostRate)
	check(i.SLO.TTFT > 0 && i.SLO.TTFT <= time.Hour, "interactive.slo.ttft is %s, want above 0 and at most %s", i.SLO.TTFT, time.Hour)
	check(i.SLO.TTFTPrompt >= 0, "interactive.slo.ttft_prompt is %d, want 0 or more", i.SLO.TTFTPrompt)
	check(i.SLO.TTFTPer1K >= 0 && i.SLO.TTFTPer1K <= time.Hour, "interactive.slo.ttft_per_1k is %s, want 0 to %s", i.SLO.TTFTPer1K, time.Hour)
	check(i.SLO.TPOT > 0 && i.SLO.TPOT <= time.Hour, "interactive.slo.tpot is %s, want above 0 and at most %s", i.SLO.TPOT, time.Hour)
	check(i.SLO.Attainment >= 0.97 && i.SLO.Attainment <= 1, "interactive.slo.attainment is %v, want 0.97 to 1", i.SLO.Attainment)
	return errors.Join(faults...)
}

func validateJobs(jobs []Job) error {
	var faults []error
	names := map[string]bool{}
	for i, j := range jobs {
		check := func(ok bool, format string, args ...any) {
			if !ok {
				faults = append(faults, fmt.Errorf("jobs[%d]."+format, append([]any{i}, args...)...))
			}
		}
		check(j.Name != "", "name is empty")
		check(j.Name == "" || !names[j.Name], "name is %q, like that of a job above; lines are drawn by it", j.Name)
		names[j.Name] = true
		_, err := workload.LookupKind(j.Kind)
		check(err == nil, "kind: %w", err)
		check(j.At >= 0 && j.At <= longest, "at is %s, want 0 to %s", j.At, longest)
		check(j.Window >= 0 && j.Window <= longest, "window is %s, want 0 for no deadline or up to %s", j.Window, longest)
		check(j.Lines >= 0 && j.Lines <= mostLines, "lines is %d, want 0 for an endless backlog or up to %d", j.Lines, mostLines)
	}
	return errors.Join(faults...)
}
