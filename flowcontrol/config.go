package flowcontrol

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/internal/faults"
)

// Config says which policy decides how much batch work the runners of a pool carry, what is known
// of the pool, and how the policies are configured. Start from DefaultConfig, which has the
// policies that are linked into the program: package flowcontrol/builtin links all of this project.
type Config struct {
	// Policy is the name of the policy. Default: headroom, because it protects interactive users.
	Policy string `yaml:"policy"`
	// SLO is the latency that interactive users are promised, for policies that protect it.
	SLO SLO `yaml:"slo"`
	// Engine is what is known of the runners' engines. Policies measure what is not given here,
	// except for model.
	Engine Engine `yaml:"engine"`
	// Shared says that interactive requests may come to the pool. Set it to false for a pool that
	// never gets any: policies that protect interactive latency then let batch lines fill the
	// engines. Default: true, because nobody can see beforehand who will come.
	Shared bool `yaml:"shared"`
	// Settings are the policies' own configurations, each in a section of the policy's name.
	Settings Settings `yaml:",inline"`
	// Shadow runs a second policy that observes the pool, and changes nothing. Below its policy's
	// name it takes the same settings as flowcontrol does.
	Shadow Shadow `yaml:"shadow" json:",omitzero"`
	// Pools holds what differs in single pools, by the name of the pool or of a model that it
	// serves: the keys of flowcontrol, laid over the values above. The entry of the pool's name
	// counts, or else that of the first of its models, by name, that has one. Example:
	// {nightly-70b: {shared: false}}. Default: none.
	Pools map[string]Config `yaml:"pools" config:"overlay"`
}

// SLO holds the service level objectives of interactive requests. TTFT and TPOT are absolute
// objectives. If neither is configured, Slowdown is the objective.
type SLO struct {
	// TTFT is the longest time to the first token. 0: none. Default: 0.
	TTFT time.Duration `yaml:"ttft"`
	// TPOT is the longest mean time between a request's further tokens. 0: none. Default: 0,
	// because an objective that is far above what an engine does permits to slow it down as much.
	TPOT time.Duration `yaml:"tpot"`
	// Slowdown is the objective if ttft and tpot are both 0: interactive iterations and first
	// tokens take at most so many times as long as they would without batch lines, above 1 and at
	// most 10. The policy schedule and scaling need an absolute objective, and use 2s and 100ms
	// where none is configured. Default: 1.15.
	Slowdown float64 `yaml:"slowdown"`
	// Late is the share of interactive requests that batch work may make miss TTFT or TPOT, above 0
	// and at most 0.1. Default: 0.006, which keeps the share of missed requests within half a
	// percentage point of that without batch work under steady traffic.
	Late float64 `yaml:"late"`
}

// Relative reports whether no absolute objective is configured, so that Slowdown is the objective.
func (s SLO) Relative() bool { return s.TTFT == 0 && s.TPOT == 0 }

// String says what interactive users are promised.
func (s SLO) String() string {
	var parts []string
	if s.TTFT > 0 {
		parts = append(parts, fmt.Sprintf("first tokens within %v", s.TTFT))
	}
	if s.TPOT > 0 {
		parts = append(parts, fmt.Sprintf("%v per token", s.TPOT))
	}
	if s.Relative() {
		return fmt.Sprintf("first tokens and tokens take at most %v times as long as without "+
			"batch work", s.Slowdown)
	}
	return fmt.Sprintf("%s, but for %.3g %% of requests", strings.Join(parts, " and "), 100*s.Late)
}

// ByAnswers says what limits batch lines where nothing shows what interactive users feel.
func (s SLO) ByAnswers() string {
	return fmt.Sprintf("lines grow while their answers take at most %v times as long as the "+
		"fastest of the last ten minutes", s.Slowdown)
}

// usualTTFT and usualTPOT are the objectives of WithUsual.
const (
	usualTTFT = 2 * time.Second
	usualTPOT = 100 * time.Millisecond
)

// WithUsual returns the SLO with usual absolute objectives in the place of those that are not
// configured, for policies that can't do without.
func (s SLO) WithUsual() SLO {
	s.TTFT, s.TPOT = cmp.Or(s.TTFT, usualTTFT), cmp.Or(s.TPOT, usualTPOT)
	return s
}

// Engine is what is known of an inference engine beforehand. Zero values are unknown.
type Engine struct {
	// CostModel predicts the time of the engine's iterations, in milliseconds: {c0: 33, c1: 0.112,
	// c2: 0.0714, n0: 112, kv: 5.25e-5, p1: 0.0052, p2: 5.14e-6} for instance. tidefill profile fit
	// measures the coefficients, and docs/profiles.md has the formula. All 0: unknown, and policies
	// rely on feedback alone. Default: unknown.
	CostModel costmodel.Model `yaml:"cost_model" config:"value"`
	// KVTokens is how many tokens its KV cache holds. 0: unknown. Default: 0.
	KVTokens int `yaml:"kv_tokens"`
	// MaxSeqs is how many requests it runs at once. 0: unknown. Default: 0.
	MaxSeqs int `yaml:"max_seqs"`
	// MaxBatchedTokens is how many tokens an iteration computes at most. 0: unknown. Default: 0.
	MaxBatchedTokens int `yaml:"max_batched_tokens"`
}

// defaultPolicy is the policy of DefaultConfig.
const defaultPolicy = "headroom"

// DefaultConfig returns the defaults of the pool and of every registered policy.
func DefaultConfig() Config {
	return Config{
		Policy:   defaultPolicy,
		SLO:      SLO{Slowdown: 1.15, Late: 0.006},
		Shared:   true,
		Settings: defaultSettings(),
		Shadow:   Shadow{Settings: defaultSettings()},
	}
}

// Validate reports every fault with the path of its field.
func (c Config) Validate() error {
	var all faults.List
	c.validatePolicy("", &all)
	c.validateShadow(&all)
	all.NotNegative("slo.ttft", c.SLO.TTFT)
	all.NotNegative("slo.tpot", c.SLO.TPOT)
	if !(c.SLO.Slowdown > 1 && c.SLO.Slowdown <= 10) {
		all.Add("slo.slowdown", "is %v, must be above 1 and at most 10", c.SLO.Slowdown)
	}
	if !(c.SLO.Late > 0 && c.SLO.Late <= 0.1) {
		all.Add("slo.late", "is %v, must be above 0 and at most 0.1", c.SLO.Late)
	}
	all.AddAll("engine.cost_model", c.Engine.CostModel.Validate())
	all.AtLeast("engine.kv_tokens", c.Engine.KVTokens, 0)
	all.AtLeast("engine.max_seqs", c.Engine.MaxSeqs, 0)
	all.AtLeast("engine.max_batched_tokens", c.Engine.MaxBatchedTokens, 0)
	for _, model := range slices.Sorted(maps.Keys(c.Pools)) {
		all.AddAll("pools."+model, c.Pools[model].validateOverlay())
	}
	return all.Err()
}

// validatePolicy reports what is wrong with the policy and the settings. prefix is the path of
// both.
func (c Config) validatePolicy(prefix string, all *faults.List) {
	if f, err := policies.Get(c.Policy); err != nil {
		all.Add(prefix+"policy", "%w", err)
	} else if own := c.Settings[c.Policy]; reflect.TypeOf(own) != reflect.TypeOf(f.Default) {
		all.Add(prefix+"policy", "the settings of %s are a %T, want a %T; start from DefaultConfig",
			c.Policy, own, f.Default)
	}
	if NeedsOf(c.Policy).CostModel && !c.Engine.CostModel.Known() {
		all.Add("engine.cost_model", "is unknown, and the policy %s needs it; measure it with "+
			"tidefill profile fit, or take another policy", c.Policy)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Settings)) {
		all.AddAll(prefix+name, c.Settings[name].Validate())
	}
}

// validateOverlay reports what is wrong with an entry of Pools.
func (c Config) validateOverlay() error {
	if c.Pools != nil {
		var all faults.List
		all.Add("pools", "a pool has no pools; write them below flowcontrol.pools")
		return all.Err()
	}
	return c.Validate()
}
