package emulator

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/simulator/engine"
)

// Instant is the profile that answers at once, without an engine.
const Instant = "instant"

// Config describes an emulated runner. Start from DefaultConfig.
type Config struct {
	// Models are the names served. As with vLLM's --served-model-name they are
	// names of one engine, and the first labels its metrics.
	// Default: emulated-model.
	Models []string

	// Profile is the model and GPU emulated: Instant, or a name of
	// engine.Profiles. Default: llama-70b-a100.
	Profile string

	// Speedup makes emulated time run this many times faster: iterations,
	// interactive arrivals and what metrics tell of them. Durations of Faults
	// are always real. Default 1.
	Speedup float64

	// Seed decides output lengths, texts, noise and faults. Default 1.
	Seed uint64

	// Scheduling is the engine's queue order. Default engine.ByPriority.
	Scheduling engine.Scheduling

	// MaxBatchedTokens (tokens per iteration), MaxSeqs (requests running at once)
	// and KVTokens (KV cache, tokens) replace the profile's own. Default 0: as the
	// profile says.
	MaxBatchedTokens int
	MaxSeqs          int
	KVTokens         int

	// MaxModelLen bounds prompt plus output, in tokens. 0: what the KV cache
	// holds. Default 32,768.
	MaxModelLen int

	// PrefixCaching reuses the KV of equal prompt beginnings. Default true.
	PrefixCaching bool

	// MaxQueueDepth is the number of waiting requests at which further ones get
	// 503 queue_full. Default 512.
	MaxQueueDepth int

	// TenantRates bounds requests per minute by X-Tenant-ID; "default" is for
	// tenants without a bound of their own and for requests without a tenant.
	// Beyond it: 429. Default: no bounds.
	TenantRates map[string]int

	// Output draws how long answers are when the request's own limit does not end
	// them earlier, in tokens. Default: median 200, sigma 0.7, at most 4,096.
	Output Lengths

	// Interactive is traffic of the runner's own. Default: none.
	Interactive Interactive

	// Faults are in force from the start. Default: none.
	Faults Faults

	// Record counts each distinct request body by its SHA-256. Its memory grows
	// with the number of bodies. Default false.
	Record bool

	// RunnerID names the runner in its capabilities. Default: emulator.
	RunnerID string

	// Logger hears of start, stop and changed faults. Default: none.
	Logger *slog.Logger
}

// Lengths is a log-normal distribution of token counts.
type Lengths struct {
	Median float64 // tokens
	Sigma  float64 // standard deviation of the logarithm
	Max    int     // longer ones are cut to it
}

// Interactive is a Poisson stream of requests at priority 0 into the engine.
type Interactive struct {
	// RPS is the mean rate in requests per emulated second. 0: none.
	RPS float64
	// Swing and Period let the rate ebb and flow as a sine: it goes from
	// RPS·(1-Swing) to RPS·(1+Swing) and back within Period emulated seconds.
	// Default: Swing 0, Period 86,400.
	Swing  float64
	Period float64
	// Prompt and Output are lengths in tokens. Defaults: medians 700 and 200.
	Prompt Lengths
	Output Lengths
	// Seed decides arrivals and lengths. 0: Config.Seed.
	Seed uint64
}

// DefaultConfig is one 70B model on four A100, without interactive traffic.
func DefaultConfig() Config {
	return Config{
		Models:        []string{"emulated-model"},
		Profile:       "llama-70b-a100",
		Speedup:       1,
		Seed:          1,
		Scheduling:    engine.ByPriority,
		MaxModelLen:   32_768,
		PrefixCaching: true,
		MaxQueueDepth: 512,
		Output:        Lengths{Median: 200, Sigma: 0.7, Max: 4096},
		Interactive: Interactive{
			Period: 86_400,
			Prompt: Lengths{Median: 700, Sigma: 0.8, Max: 8000},
			Output: Lengths{Median: 200, Sigma: 0.7, Max: 2000},
		},
		RunnerID: "emulator",
	}
}

// Validate reports every fault of the configuration at once.
func (c Config) Validate() error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	check(len(c.Models) > 0, "models is empty, want at least one name")
	for i, m := range c.Models {
		check(strings.TrimSpace(m) != "", "models[%d] is blank", i)
	}
	check(c.Speedup > 0, "speedup is %v, want above 0", c.Speedup)
	check(c.MaxModelLen == 0 || c.MaxModelLen >= 2, "max_model_len is %d, want 0 or at least 2",
		c.MaxModelLen)
	check(c.MaxQueueDepth >= 1, "max_queue_depth is %d, want at least 1", c.MaxQueueDepth)
	for _, tenant := range slices.Sorted(maps.Keys(c.TenantRates)) {
		check(c.TenantRates[tenant] >= 1, "tenant_rates[%s] is %d, want at least 1", tenant,
			c.TenantRates[tenant])
	}
	if err := c.Output.validate(); err != nil {
		check(false, "output: %w", err)
	}
	if err := c.Interactive.validate(); err != nil {
		check(false, "interactive: %w", err)
	}
	if err := c.Faults.Validate(); err != nil {
		check(false, "faults: %w", err)
	}
	if c.Profile == Instant {
		check(c.Interactive.RPS == 0,
			"interactive.rps is %v, want 0: profile %q has no engine to load", c.Interactive.RPS,
			Instant)
	} else if e, err := c.engine(); err != nil {
		check(false, "%w", err)
	} else if err := e.Validate(); err != nil {
		check(false, "%w", err)
	}
	return errors.Join(faults...)
}

// engine is the configuration of the emulated engine.
func (c Config) engine() (engine.Config, error) {
	p, ok := engine.ProfileNamed(c.Profile)
	if !ok {
		names := []string{Instant}
		for _, p := range engine.Profiles() {
			names = append(names, p.Name)
		}
		return engine.Config{}, fmt.Errorf("profile is %q, want one of %s", c.Profile,
			strings.Join(names, ", "))
	}
	replace := func(field *int, with int) {
		if with != 0 {
			*field = with
		}
	}
	replace(&p.MaxBatchedTokens, c.MaxBatchedTokens)
	replace(&p.MaxSeqs, c.MaxSeqs)
	replace(&p.KVTokens, c.KVTokens)
	e := engine.DefaultConfig(p)
	e.Scheduling = c.Scheduling
	e.MaxModelLen = c.MaxModelLen
	e.PrefixCaching = c.PrefixCaching
	return e, nil
}

func (l Lengths) validate() error {
	if l.Median < 1 || l.Sigma < 0 || l.Max < 1 {
		return fmt.Errorf("lengths are %+v, want median and max at least 1 and sigma at least 0", l)
	}
	return nil
}

func (i Interactive) validate() error {
	if i.RPS == 0 {
		return nil
	}
	var faults []error
	if i.RPS < 0 {
		faults = append(faults, fmt.Errorf("rps is %v, want at least 0", i.RPS))
	}
	if i.Swing < 0 || i.Swing > 1 {
		faults = append(faults, fmt.Errorf("swing is %v, want 0 to 1", i.Swing))
	}
	if i.Swing > 0 && i.Period <= 0 {
		faults = append(faults, fmt.Errorf("period is %v s, want above 0", i.Period))
	}
	return errors.Join(append(faults, i.Prompt.validate(), i.Output.validate())...)
}
