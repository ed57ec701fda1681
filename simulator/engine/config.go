package engine

import (
	"errors"
	"fmt"
	"time"
)

// BlockSize is the number of tokens in a KV block.
const BlockSize = 16

// watermark is the share of KV blocks that stays free when a request is admitted, so that running
// requests can grow before one is preempted.
const watermark = 0.02

// Scheduling is the order of the waiting queue and of preemption.
type Scheduling string

const (
	// ByPriority admits the lowest Request.Priority first, then the earliest.
	ByPriority Scheduling = "priority"
	// FirstCome ignores priorities.
	FirstCome Scheduling = "fcfs"
)

// Host is the software around the GPU. Its time is part of an iteration.
type Host string

const (
	// HostV1 is vLLM V1 with CUDA graphs: 2 ms, included in the cost model's C0.
	HostV1 Host = "v1"
	// HostLegacy is the Ray-based V0: 6.7 ms, and 3 to 8 ms more as the number of requests in the
	// iteration grows to 128.
	HostLegacy Host = "legacy"
)

func (h Host) extra(requests int) float64 {
	if h != HostLegacy {
		return 0
	}
	return 6.7 + 3 + 5*float64(min(requests, 128))/128 - 2
}

// Config describes an engine. Start from DefaultConfig.
type Config struct {
	Profile    Profile
	Scheduling Scheduling
	Host       Host

	// MaxModelLen limits prompt plus output of a request, in tokens. The KV capacity limits it too.
	// 0: the KV capacity.
	MaxModelLen int

	// PrefixCaching reuses KV blocks with known hashes.
	PrefixCaching bool

	// Noise is the standard deviation of the logarithm of an iteration's time. Default 0.01, as
	// measured on a real server. 0: none.
	Noise float64

	// MaxRun limits how many iterations with decoding only are planned and reported as one. Default
	// 1: each is reported.
	MaxRun int
}

// DefaultConfig returns vLLM V1 with priority scheduling and prefix caching.
func DefaultConfig(p Profile) Config {
	return Config{
		Profile:       p,
		Scheduling:    ByPriority,
		Host:          HostV1,
		PrefixCaching: true,
		Noise:         0.01,
		MaxRun:        1,
	}
}

// Validate reports every fault of the configuration.
func (c Config) Validate() error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	p := c.Profile
	if err := p.CostModel.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("profile.cost_model.%w", err))
	}
	check(p.CostModel.C0 != 0, "profile.cost_model.c0: is 0, must be above 0")
	check(p.KVTokens >= BlockSize, "profile.kv_tokens is %d, want at least one block of %d",
		p.KVTokens, BlockSize)
	check(p.MaxSeqs >= 1, "profile.max_seqs is %d, want at least 1", p.MaxSeqs)
	check(p.MaxBatchedTokens >= p.MaxSeqs,
		"profile.max_batched_tokens is %d, want at least max_seqs (%d)", p.MaxBatchedTokens,
		p.MaxSeqs)
	check(c.Scheduling == ByPriority || c.Scheduling == FirstCome,
		"scheduling is %q, want %q or %q", c.Scheduling, ByPriority, FirstCome)
	check(c.Host == HostV1 || c.Host == HostLegacy, "host is %q, want %q or %q", c.Host, HostV1,
		HostLegacy)
	check(c.MaxModelLen == 0 || c.MaxModelLen >= 2, "max_model_len is %d, want 0 or at least 2",
		c.MaxModelLen)
	check(c.Noise >= 0 && c.Noise <= 1, "noise is %v, want 0 to 1", c.Noise)
	check(c.MaxRun >= 1, "max_run is %d, want at least 1", c.MaxRun)
	return errors.Join(faults...)
}

// Time of the server outside the iterations (HTTP, tokenization, streaming), measured on vLLM 0.15.
const (
	serverPerRequest = 16 * time.Millisecond
	serverPerToken   = 50 * time.Microsecond
)

// ServerDelay returns how long after the engine has produced the n-th token of a request a client
// receives it. It does not slow the iterations.
func ServerDelay(n int) time.Duration {
	return serverPerRequest + time.Duration(n)*serverPerToken
}
