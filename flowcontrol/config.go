package flowcontrol

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/costmodel"
)

// Config says how much batch work the runners of a pool may carry. Start from DefaultConfig.
type Config struct {
	// Policy is the controller: aimd, fixed, probe or a registered one. Default: aimd, because it
	// needs no knowledge of the engines.
	Policy string `yaml:"policy"`
	// SLO is what interactive users are promised, for policies that protect it.
	SLO SLO `yaml:"slo"`
	// Engine is what is known of the runners' engines. A policy that asks for nothing here learns
	// by itself.
	Engine Engine `yaml:"engine"`
	// Fixed is for the policy fixed.
	Fixed FixedConfig `yaml:"fixed"`
	// AIMD is for the policy aimd.
	AIMD AIMDConfig `yaml:"aimd"`
	// Probe is for the policy probe.
	Probe ProbeConfig `yaml:"probe"`
	// Budget is for the policy budget, the dispatch budget of llm-d-async.
	Budget BudgetConfig `yaml:"budget"`
	// Saturation is for the policy saturation, a threshold on the pool's load as in llm-d.
	Saturation SaturationConfig `yaml:"saturation"`
	// Gradient is for the policy gradient, Netflix's Gradient2.
	Gradient GradientConfig `yaml:"gradient"`
	// Model is for the policy model, which goes by the engine's law alone.
	Model ModelConfig `yaml:"model"`
	// Schedule is for the policy schedule, a timetable.
	Schedule ScheduleConfig `yaml:"schedule"`
	// Pools is what pools have of their own, by the name of a model that they serve: the keys of
	// flowcontrol, laid over what stands there. A pool of models of several names goes by the first
	// of them. For instance {nightly-70b: {probe: {shared: false}}}, where users never ask for
	// nightly-70b. Default: none.
	Pools map[string]Config `yaml:"pools" config:"overlay"`
}

// SLO is what interactive users are promised.
type SLO struct {
	// TTFT is the longest time to the first token. Default: 2s.
	TTFT time.Duration `yaml:"ttft"`
	// TPOT is the longest mean time between a request's further tokens. Default: 100ms, which a
	// reader does not notice.
	TPOT time.Duration `yaml:"tpot"`
	// Late is the share of interactive requests for which batch work may break either promise,
	// above 0 and at most 0.1. Default: 0.006, which keeps a steady day's loss within half a point.
	Late float64 `yaml:"late"`
}

// Engine is what is known of an inference engine beforehand. Zero values are unknown.
type Engine struct {
	// CostModel predicts the time of its iterations. All zero: unknown, and only feedback counts.
	// Default: unknown.
	CostModel costmodel.Model `yaml:"cost_model"`
	// KVTokens is how many tokens its KV cache holds. 0: unknown. Default: 0.
	KVTokens int `yaml:"kv_tokens"`
	// MaxSeqs is how many requests it runs at once. 0: unknown. Default: 0.
	MaxSeqs int `yaml:"max_seqs"`
	// MaxBatchedTokens is how many tokens an iteration computes at most. 0: unknown. Default: 0.
	MaxBatchedTokens int `yaml:"max_batched_tokens"`
}

// FixedConfig sets the numbers of lines by hand.
type FixedConfig struct {
	// PerRunner is how many batch lines each runner carries at most, at least 1. Default: 64, a
	// quarter of the 256 sequences that vLLM runs at once by default, so that interactive requests
	// find room.
	PerRunner int `yaml:"per_runner"`
	// PerPool is how many the pool carries at most, shared out between its runners. 0: no limit.
	// Default: 0.
	PerPool int `yaml:"per_pool"`
}

// AIMDConfig bounds additive increase and multiplicative decrease.
type AIMDConfig struct {
	// Start is a new runner's number of lines, at least 1; more than PerRunner counts as that.
	// Default: 16, few enough for any engine that serves more than one user, many enough that a
	// large one is well used within its first minutes.
	Start int `yaml:"start"`
	// Least is how few lines sheds leave a runner, at least 1. Default: 1, so that it is never
	// forgotten and never more than asked.
	Least int `yaml:"least"`
	// PerRunner is how many lines a runner carries at most, at least 1. An engine that queues
	// instead of shedding gets that many in the end. Default: 128, half of the 256 sequences that
	// vLLM runs at once by default.
	PerRunner int `yaml:"per_runner"`
	// PerPool is how many the pool carries at most, shared out between its runners. 0: no limit.
	// Default: 0.
	PerPool int `yaml:"per_pool"`
	// Increase is how many lines a runner's limit gains after as many answers as the limit, none of
	// them shed. At least 1. Default: 1.
	Increase int `yaml:"increase"`
	// Decrease is what a runner's limit is multiplied by when it sheds, above 0 and below 1; Least
	// always remain. Default: 0.7, as TCP CUBIC: with steps of Increase it loses less of a good
	// level than 0.5 and still frees a third at once.
	Decrease float64 `yaml:"decrease"`
	// DecreaseEvery is the least time between two decreases of a runner, because lines that are
	// shed together are one sign. 0: every shed counts. Default: 2s, longer than a burst of
	// refusals takes to come back.
	DecreaseEvery time.Duration `yaml:"decrease_every"`
}

// DefaultConfig learns each runner's limit from what it sheds.
func DefaultConfig() Config {
	return Config{
		Policy: "aimd",
		SLO:    SLO{TTFT: 2 * time.Second, TPOT: 100 * time.Millisecond, Late: 0.006},
		Fixed:  FixedConfig{PerRunner: 64},
		AIMD: AIMDConfig{
			Start:         16,
			Least:         1,
			PerRunner:     128,
			Increase:      1,
			Decrease:      0.7,
			DecreaseEvery: 2 * time.Second,
		},
		Probe:      defaultProbe(),
		Budget:     defaultBudget(),
		Saturation: defaultSaturation(),
		Gradient:   defaultGradient(),
		Model:      defaultModel(),
		Schedule:   defaultSchedule(),
	}
}

// Validate reports every fault with the path of its field.
func (c Config) Validate() error {
	var all faults
	if err := known(c.Policy); err != nil {
		all.add("policy", "%w", err)
	}
	if c.SLO.TTFT <= 0 || c.SLO.TPOT <= 0 {
		all.add("slo", "ttft %v and tpot %v must be positive", c.SLO.TTFT, c.SLO.TPOT)
	}
	if !(c.SLO.Late > 0 && c.SLO.Late <= 0.1) {
		all.add("slo.late", "is %v, must be above 0 and at most 0.1", c.SLO.Late)
	}
	if err := c.Engine.CostModel.Validate(); err != nil {
		all = append(all, fmt.Errorf("engine.cost_model.%w", err))
	}
	all.atLeast("engine.kv_tokens", c.Engine.KVTokens, 0)
	all.atLeast("engine.max_seqs", c.Engine.MaxSeqs, 0)
	all.atLeast("engine.max_batched_tokens", c.Engine.MaxBatchedTokens, 0)
	all.atLeast("fixed.per_runner", c.Fixed.PerRunner, 1)
	all.atLeast("fixed.per_pool", c.Fixed.PerPool, 0)
	all.atLeast("aimd.per_runner", c.AIMD.PerRunner, 1)
	all.atLeast("aimd.per_pool", c.AIMD.PerPool, 0)
	all.atLeast("aimd.increase", c.AIMD.Increase, 1)
	all.atLeast("aimd.start", c.AIMD.Start, 1)
	all.atLeast("aimd.least", c.AIMD.Least, 1)
	if !(c.AIMD.Decrease > 0 && c.AIMD.Decrease < 1) {
		all.add("aimd.decrease", "is %v, must be above 0 and below 1", c.AIMD.Decrease)
	}
	if c.AIMD.DecreaseEvery < 0 {
		all.add("aimd.decrease_every", "is %v, must not be negative", c.AIMD.DecreaseEvery)
	}
	c.Probe.validate(&all)
	c.Budget.validate(&all)
	c.Saturation.validate(&all)
	c.Gradient.validate(&all)
	c.Model.validate(&all, c.Policy, c.Engine.CostModel)
	c.Schedule.validate(&all)
	c.validatePools(&all)
	return errors.Join(all...)
}

// faults collects what is wrong, each with the path of its field.
type faults []error

func (f *faults) add(path, format string, args ...any) {
	*f = append(*f, fmt.Errorf("%s: "+format, append([]any{path}, args...)...))
}

func (f *faults) atLeast(path string, got, least int) {
	if got < least {
		f.add(path, "is %d, must be at least %d", got, least)
	}
}
