package headroom

import (
	"time"

	"github.com/tidefill/tidefill/internal/faults"
)

// Tuning holds what the policy can be tuned by, and its constants, which are no keys: tests and the
// laboratory set them. docs/designs/headroom.md says why it has them, and
// simulator/lab/docs/headroom-ablations.md what each is worth.
type Tuning struct {
	// Pace decides how fast a runner's lines and prompts follow the measured iteration time.
	Pace Pace `yaml:"pace"`
	// TargetShare is the share that batch work may use of what is left between the time of
	// iterations without it and slo.tpot, while prompts of batch lines lengthen iterations. A
	// higher share harvests more and makes more interactive requests miss slo.tpot; those that do
	// lower it.
	TargetShare Level `yaml:"target_share"`
	// DecodeShareStart is where the target share starts for iterations that only decoding lines
	// lengthen. A higher start harvests more at once and takes longer to yield, since such lines
	// cannot be shortened when interactive requests come. It then moves as TargetShare does; jobs
	// whose work is half prompts get the middle of both. Default: 0.35.
	DecodeShareStart float64 `yaml:"-"`
	// PromptTokens is how many prompt tokens of batch lines may wait on a runner to be computed. A
	// higher limit harvests more and makes more interactive requests miss slo.ttft; those that do
	// lower it.
	PromptTokens Level `yaml:"-"`
	// FirstTokens is the part of slo.late that may become late because lines, and the same again
	// because prompts, delay first tokens, by the distribution of first tokens. A higher part
	// harvests more. Default: 0.4.
	FirstTokens float64 `yaml:"first_tokens"`
	// LateByPrompts is how many times slo.late may become late because prompts of lines lengthen
	// the iterations of interactive answers. A higher part harvests more. Default: 1.
	LateByPrompts float64 `yaml:"-"`
	// TokenTimes is how many times slo.late may become late by the distribution of the mean times
	// between tokens, which is coarse and therefore allows more than the target share. A higher
	// value harvests more. Default: 2.
	TokenTimes float64 `yaml:"-"`
	// Fit decides how far measurements correct the engine's cost model.
	Fit Fit `yaml:"-"`
	// Reserve is what stays free for interactive requests to come. A larger reserve harvests less
	// and needs fewer evictions in a surge.
	Reserve Reserve `yaml:"reserve"`
	// Brake evicts lines while interactive requests suffer. Evictions waste the work done for these
	// lines.
	Brake Brake `yaml:"-"`
	// Staleness sets how the allowance shrinks while there are no observations of a runner: no
	// token, no answer, no metrics that change.
	Staleness Staleness `yaml:"-"`
	// Deadlines limits what deadlines may claim from interactive requests.
	Deadlines Deadlines `yaml:"-"`
	// Decrease is what a runner's lines are multiplied by when it sheds, above 0 and below 1. A
	// lower value sheds less and harvests less. Default: 0.7, as for aimd.
	Decrease float64 `yaml:"-"`
	// DecreaseEvery is the least time between two such decreases. Default: 2s, longer than a burst
	// of refusals takes to arrive.
	DecreaseEvery time.Duration `yaml:"-"`
}

// Pace decides how fast a runner's lines and prompts follow the measured iteration time.
type Pace struct {
	// Gain decides how fast lines follow the target: the share of the distance that they make up
	// for in a second, above 0 and at most 1. A higher gain uses idle capacity sooner and
	// oscillates more. Default: 0.1, since the effect of a line shows within a few seconds and the
	// mean of one second is noisy.
	Gain float64 `yaml:"gain"`
	// GainUnstreamed replaces the gain while iterations are known only from answers, which are
	// late. Default: 0.03.
	GainUnstreamed float64 `yaml:"-"`
	// GainPerLife slows the gain down for lines that run long: it is the share of the distance that
	// they make up for within their life. Default: 0.5, because lines that run for minutes cannot
	// be taken back when interactive requests come.
	GainPerLife float64 `yaml:"-"`
	// Window is how far the mean iteration time looks back that decides about lines. A longer
	// window is smoother and reacts later. Default: 3s.
	Window time.Duration `yaml:"-"`
	// MaxCredit lets prompts come in larger bursts: it is how much iteration time below the target
	// a runner may save and spend on prompts later. Default: 150ms, about one prompt: more would be
	// spent at once, and requests that decode then would wait for all of it.
	MaxCredit time.Duration `yaml:"-"`
	// MaxDebt is how much iteration time above the target is remembered, for which prompts wait.
	// Default: 1s. After an interactive burst that took more, waiting longer helps nobody.
	MaxDebt time.Duration `yaml:"-"`
	// MaxPrompts is how many lines' prompts may wait on a runner at once, at least 1. A lower value
	// spreads short prompts more evenly. Default: 4.
	MaxPrompts int `yaml:"-"`
	// MaxGrowth limits how fast lines grow: the most in a second, as a share of themselves, besides
	// one line. A lower value uses idle capacity later. Default: 0.03, because lines cost more once
	// they hold their context, which shows when they cannot be taken back any more.
	MaxGrowth float64 `yaml:"-"`
	// Lag is the life of a line at which lines that are yet to start, or to end, count half. A
	// longer lag reacts less to them. Default: 30s.
	Lag time.Duration `yaml:"-"`
	// MaxLineRatio keeps runners alike: a runner may carry this many times the lines of the runner
	// with the fewest, 1 or more. Default: 1.25. A router that considers load sends interactive
	// requests to runners with few lines, which makes a difference grow.
	MaxLineRatio float64 `yaml:"-"`
	// MaxContextRatio keeps runners alike: another line starts only while a runner's lines hold
	// less than this many times the context tokens of the runner whose lines hold the least, 1 or
	// more. Default: 1.5.
	MaxContextRatio float64 `yaml:"-"`
	// CarriedRatio keeps the allowance near the lines that runners carry on average: at most this
	// multiple of them, and at least this part, above 1. A higher ratio starts more lines at once
	// when a queue fills again. Default: 1.5, because lines that are allowed but not carried prove
	// nothing.
	CarriedRatio float64 `yaml:"-"`
}

// Level bounds a value that late interactive requests control. It rises by gain times the allowed
// share for each request that was answered and falls by gain for each that was late, as shares of
// itself, so that it settles where the share of late requests is the allowed one.
type Level struct {
	// Start is the value before any request was answered.
	Start float64 `yaml:"start"`
	// Min is the lowest value.
	Min float64 `yaml:"-"`
	// Max is the highest value.
	Max float64 `yaml:"max"`
	// Gain is the share by which a late request lowers the value, at least: where few requests
	// come, each counts for more. A small gain follows the traffic slowly, a large one follows
	// every surge. 0: the value stays as it starts.
	Gain float64 `yaml:"-"`
	// MaxFall is the most that one reading may take from the value, as a share: a single surge says
	// little about the next hour. Readings that are more than 5 s apart take more in proportion, up
	// to 6 times as much.
	MaxFall float64 `yaml:"-"`
	// BudgetShare is the part of slo.late that this value may use up, above 0 and at most 1.
	BudgetShare float64 `yaml:"-"`
}

// Fit decides how far measurements correct the engine's cost model.
type Fit struct {
	// HalfLife is the number of measurements after which the evidence of older ones counts half, at
	// least 1. A lower value follows changes of the engine faster and is noisier. Default: 3000,
	// an hour of four runners.
	HalfLife int `yaml:"-"`
	// MaxCorrection is the factor by which a coefficient may be corrected in either direction, at
	// least 1. Raise it if the configured cost model is further off. Default: 2; more is likely
	// noise, and the feedback works without it.
	MaxCorrection float64 `yaml:"-"`
	// MaxCorrectionUnknown is the same for an engine without a cost model, for which one is guessed
	// from the SLO. Default: 8.
	MaxCorrectionUnknown float64 `yaml:"-"`
}

// Reserve is what stays free for interactive requests to come.
type Reserve struct {
	// KVUsed is the share of the KV cache that may be in use, all requests together. Default: 0.85;
	// above it, engines begin to preempt.
	KVUsed float64 `yaml:"kv_used"`
	// KVDeviations is how many standard deviations above the mean the KV tokens of lines under way
	// are assumed. Default: 2, because a few lines of very different lengths may all be long.
	KVDeviations float64 `yaml:"-"`
}

// Brake evicts lines while iterations are too long in the whole pool.
type Brake struct {
	// PoolAbove is the share of slo.tpot above which the mean of all runners' iterations is too
	// long, packed ones left out; up to their target they never are. Default: 0.85.
	PoolAbove float64 `yaml:"-"`
	// MinOwnShare is the share of slo.tpot that the batch lines running on a runner must cost for
	// an eviction, and of the KV cache that they must hold. Default: 0.02; with less, ending them
	// helps nobody.
	MinOwnShare float64 `yaml:"-"`
	// After is how long they must be too long before lines are evicted. A longer time wastes less
	// and leaves interactive requests slow for longer. Default: 3s.
	After time.Duration `yaml:"-"`
	// EvictShare is the most of a runner's lines that are evicted in a second. Default: 0.3.
	EvictShare float64 `yaml:"-"`
	// MaxWaste is the share of the tokens answered within the last hour that evictions may waste,
	// those for a full KV cache included; three times as much once more interactive requests were
	// late than may be. Default: 0.015.
	MaxWaste float64 `yaml:"-"`
	// Hold is how long the lines stay down afterwards. Default: 30s.
	Hold time.Duration `yaml:"-"`
}

// Staleness sets how the allowance shrinks while there are no observations of a runner.
type Staleness struct {
	// AgingAfter is the silence after which a runner's lines no longer grow, or twice the usual
	// time between two observations where that is longer, up to stale_after. Default: 15s.
	AgingAfter time.Duration `yaml:"-"`
	// StaleAfter is the silence after which they shrink. Default: 60s.
	StaleAfter time.Duration `yaml:"-"`
	// HalfLife is how long they then take to halve. Default: 30s.
	HalfLife time.Duration `yaml:"-"`
	// MinShare is the share of the last good number of lines that remains; 1 line always does.
	// Default: 0.1.
	MinShare float64 `yaml:"-"`
	// BrokenLines is how many lines in a row must break for a runner to count as unreachable. It
	// then carries 1 line at each retry. Default: 5.
	BrokenLines int `yaml:"-"`
	// Retry is how often an unreachable runner is tried. Default: 15s.
	Retry time.Duration `yaml:"-"`
	// Recovery is by how much the lines grow in a second afterwards, as a share. Default: 0.1.
	Recovery float64 `yaml:"-"`
}

// Deadlines limits what deadlines may claim from interactive requests.
type Deadlines struct {
	// SafeShare is the share of a runner's safe lines up to which deadlines raise its lines above
	// what interactive latency allows. A higher share meets more deadlines and makes more
	// interactive requests late. Prompts keep to the target all the same. Default: 0.1.
	SafeShare float64 `yaml:"-"`
}

func defaultTuning() Tuning {
	return Tuning{
		Pace: Pace{
			Gain: 0.1, GainUnstreamed: 0.03, GainPerLife: 0.5, Window: 3 * time.Second,
			MaxCredit: 150 * time.Millisecond, MaxDebt: time.Second, MaxPrompts: 4,
			MaxGrowth: 0.03, Lag: 30 * time.Second, MaxLineRatio: 1.25,
			MaxContextRatio: 1.5, CarriedRatio: 1.5,
		},
		TargetShare: Level{Start: 0.58, Min: 0.002, Max: 1.1, Gain: 0.007,
			MaxFall: 0.03, BudgetShare: 0.6},
		DecodeShareStart: 0.35,
		PromptTokens: Level{Start: 1024, Min: 16, Max: 4096, Gain: 0.02,
			MaxFall: 0.1, BudgetShare: 0.4},
		FirstTokens: 0.4, LateByPrompts: 1, TokenTimes: 2,
		Fit:     Fit{HalfLife: 3000, MaxCorrection: 2, MaxCorrectionUnknown: 8},
		Reserve: Reserve{KVUsed: 0.85, KVDeviations: 2},
		Brake: Brake{
			PoolAbove: 0.85, MinOwnShare: 0.02, After: 3 * time.Second, EvictShare: 0.3,
			MaxWaste: 0.015, Hold: 30 * time.Second,
		},
		Staleness: Staleness{
			AgingAfter: 15 * time.Second, StaleAfter: time.Minute, HalfLife: 30 * time.Second,
			MinShare: 0.1, BrokenLines: 5, Retry: 15 * time.Second, Recovery: 0.1,
		},
		Deadlines: Deadlines{SafeShare: 0.1},
		Decrease:  0.7, DecreaseEvery: 2 * time.Second,
	}
}

func (t Tuning) validate() error {
	var all faults.List
	all.Within("pace.gain", t.Pace.Gain, 1e-4, 1)
	all.Within("target_share.max", t.TargetShare.Max, t.TargetShare.Min, 2)
	all.Within("target_share.start", t.TargetShare.Start, t.TargetShare.Min, t.TargetShare.Max)
	all.Within("first_tokens", t.FirstTokens, 0, 1000)
	all.Within("reserve.kv_used", t.Reserve.KVUsed, 0.01, 1)
	return all.Err()
}
