package flowcontrol

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol/internal/faults"
)

func init() {
	Register("headroom", Factory{
		Default: DefaultProbe(),
		Needs:   Needs{Readings: true, Streams: true, UnsharedIterations: true},
		New:     func(cfg Config) (Controller, error) { return newProbe(cfg), nil },
	})
	Register("model", Factory{
		Default: DefaultModel(),
		Needs:   Needs{Readings: true, Streams: true, CostModel: true},
		New:     func(cfg Config) (Controller, error) { return newModel(cfg), nil },
	})
	Register("schedule", Factory{
		Default: DefaultSchedule(),
		Needs:   Needs{Readings: true, Streams: true},
		New:     func(cfg Config) (Controller, error) { return newSchedule(cfg), nil },
	})
}

// ProbeConfig holds the constants of the policy probe. docs/policies.md tells what was tried and
// what each brought.
type ProbeConfig struct {
	// Start is how many lines a runner carries while nothing at all is known of it, at least 1.
	// Default: 2, one to be streamed and one to see that a second costs little.
	Start int `yaml:"start"`
	// PerRunner is how many lines a runner carries at most, at least 1. Default: 512, more than
	// engines run at once; what the engine can run, where that is known, bounds earlier.
	PerRunner int `yaml:"per_runner"`
	// PerPool is how many the pool carries at most, shared out between its runners. 0: no limit.
	// Default: 0.
	PerPool int `yaml:"per_pool"`
	// Streams is how many lines of a runner are streamed, at least 1. Default: 512, all: every
	// first token tells at once that a prompt is computed and that the next may go. With 4, prompts
	// are followed by answers alone and starts wait for those.
	Streams int `yaml:"streams"`

	// Pace is how lines and prompts follow the token gaps.
	Pace PaceConfig `yaml:"pace"`
	// Theta is the share of the SLO's TPOT that iterations may take on average, while prompts of
	// ours make them long. Late TPOT steers it.
	Theta LevelConfig `yaml:"theta"`
	// Standing is where the same share begins for iterations that are long by lines alone, which
	// can't be taken back when interactive requests come; it moves as Theta does. Jobs whose work
	// is half prompts get the middle of both. Default: 0.6.
	Standing float64 `yaml:"standing"`
	// Prompt is how many prompt tokens of ours may wait on a runner to be computed. Late TTFT
	// steers it.
	Prompt LevelConfig `yaml:"prompt"`
	// Fit is how the coefficients of Engine.CostModel are corrected.
	Fit FitConfig `yaml:"fit"`
	// Reserve is what is kept free for interactive requests to come.
	Reserve ReserveConfig `yaml:"reserve"`
	// Brake recalls lines when interactive requests suffer.
	Brake BrakeConfig `yaml:"brake"`
	// Doubt is what becomes of the allowance when nothing is seen.
	Doubt DoubtConfig `yaml:"doubt"`
	// Floor is what deadlines may ask for.
	Floor FloorConfig `yaml:"floor"`

	// Decrease is what a runner's lines are multiplied by when it sheds, above 0 and below 1.
	// Default: 0.7, as aimd's.
	Decrease float64 `yaml:"decrease"`
	// DecreaseEvery is the least time between two such decreases. Default: 2s, longer than a burst
	// of refusals takes to come back.
	DecreaseEvery time.Duration `yaml:"decrease_every"`

	// Planted is a mistake made on purpose, so that tests can show that they would find it. No file
	// can ask for one.
	Planted Mistake `yaml:"-"`
}

// PaceConfig is how lines and prompts follow the token gaps.
type PaceConfig struct {
	// Gain is the share of the distance to the target that a runner's lines make up for in a
	// second, above 0 and at most 1. Default: 0.1, since the effect of a line shows within a few
	// seconds and the gap of one second is noisy.
	Gain float64 `yaml:"gain"`
	// GainUnstreamed is Gain where iterations are known only from answers and metrics, which come
	// late. Default: 0.03.
	GainUnstreamed float64 `yaml:"gain_unstreamed"`
	// Memory is how long the mean iteration time looks back, which steers the lines. Default: 3s.
	Memory time.Duration `yaml:"memory"`
	// Save is how much iteration time below the target a runner may save up and spend on prompts
	// later. Default: 150ms, one prompt's worth: more would be spent at once, and those who decode
	// then would wait for all of it.
	Save time.Duration `yaml:"save"`
	// Debt is how much iteration time above the target is remembered, for which prompts wait.
	// Default: 1s. An interactive burst that cost more is over for those it hurt; waiting longer
	// gives nothing back.
	Debt time.Duration `yaml:"debt"`
	// Prompts is how many lines' prompts may wait on a runner at once, at least 1. Default: 4, so
	// that short ones come evenly too.
	Prompts int `yaml:"prompts"`
	// Trickle is the share of the time that prompts may take even where iterations are too long, 0
	// to 1. Default: 0.02. Lines that cost little to begin and much to run would else die out on a
	// runner that has many interactive requests for a while, and a router that looks at load would
	// send it more.
	Trickle float64 `yaml:"trickle"`
	// Lives bounds Gain to this share of the distance within a line's life. Default: 0.5: lines
	// that run for minutes can't be taken back when interactive requests come, and let go too fast
	// they would swing.
	Lives float64 `yaml:"lives"`
	// Slew is the most by which the lines grow in a second, as a share of themselves, beside one
	// line. Default: 0.03: what lines will cost once they hold their context shows only when it is
	// too late to take them back.
	Slew float64 `yaml:"slew"`
	// Lag is how long lines must live for those that are yet to start, or to end, to be counted
	// half. Default: 30s.
	Lag time.Duration `yaml:"lag"`
	// Apart is how many times as many lines as the one that carries the fewest a runner may carry,
	// 1 or more. Default: 1.25. A router that looks at load sends interactive requests where our
	// lines are few, and those who run ahead make it worse.
	Apart float64 `yaml:"apart"`
	// Held is how many times as much context as the runner whose lines hold the least a runner's
	// may hold when another starts, 1 or more. Default: 1.5.
	Held float64 `yaml:"held"`
	// Reach bounds a runner's lines to this multiple, and to this part, of those it carries, above
	// 1: what isn't carried proves nothing. Default: 1.5.
	Reach float64 `yaml:"reach"`
}

// LevelConfig bounds a level that moves with the interactive requests that were late: up by
// Gain·allowed for each that came back, down by Gain for each that was late, as shares of itself.
// It rests where the share of late ones is the allowed one.
type LevelConfig struct {
	// Start is where it begins, before anything came back.
	Start float64 `yaml:"start"`
	// Least is the lowest it falls to.
	Least float64 `yaml:"least"`
	// Most is the highest it rises to.
	Most float64 `yaml:"most"`
	// Gain is the share by which a late request lowers it. A small one follows the traffic slowly,
	// a large one each surge.
	Gain float64 `yaml:"gain"`
	// Leap is by how many times faster it rises while it is proven to be far too low: hardly a late
	// one among hundreds, 1 or more.
	Leap float64 `yaml:"leap"`
	// Fall is the most that one reading may take from the level, as a share: what a single surge
	// did says little of the next hour.
	Fall float64 `yaml:"fall"`
	// Ease is the share by which the level is lowered, beyond that, for each multiple of the
	// allowed share that was late within Memory.
	Ease float64 `yaml:"ease"`
	// Eased is the most by which Ease lowers it, as a share.
	Eased float64 `yaml:"eased"`
	// Memory is how long a late request is held against the level by Ease.
	Memory time.Duration `yaml:"memory"`
	// Part is this level's part of SLO.Late, above 0 and at most 1.
	Part float64 `yaml:"part"`
}

// FitConfig is how the coefficients of the law are corrected by what is seen.
type FitConfig struct {
	// Memory is how many token gap reports back half of the evidence lies, at least 1. Default:
	// 3000, some minutes of a few runners.
	Memory int `yaml:"memory"`
	// Trust is by what factor a coefficient may be corrected, at least 1. Default: 2, in either
	// direction: what is further off is more likely noise, and the feedback finds the way without.
	Trust float64 `yaml:"trust"`
	// Unknown is the same for an engine whose law is not known, for which a law is guessed from the
	// SLO. Default: 8.
	Unknown float64 `yaml:"unknown"`
}

// ReserveConfig is what is kept free for interactive requests.
type ReserveConfig struct {
	// KV is the share of the KV cache that may be filled. Default: 0.85; beyond, engines begin to
	// preempt.
	KV float64 `yaml:"kv"`
	// Growth is what the most KV that interactive requests held within Window is multiplied by.
	// Default: 1.3.
	Growth float64 `yaml:"growth"`
	// Tail is how many standard deviations above their mean the KV of lines under way is taken.
	// Default: 2: few lines of very different lengths may all be long ones.
	Tail float64 `yaml:"tail"`
	// Slots is how many of the engine's sequences stay free beyond the most that interactive
	// requests had within Window. Default: 16.
	Slots int `yaml:"slots"`
	// Window is how far back the most is looked for. Default: 1m: an answer or two long, and what
	// grows beyond is seen to.
	Window time.Duration `yaml:"window"`
	// Sigmas is how many standard deviations above its mean the interactive load is taken in the
	// law. Default: 1.
	Sigmas float64 `yaml:"sigmas"`
}

// BrakeConfig recalls lines when two signs agree: iterations are longer than Above, and interactive
// requests wait or are late.
type BrakeConfig struct {
	// Above is the share of the SLO's TPOT above which iterations are too long. Default: 1.15.
	Above float64 `yaml:"above"`
	// Reach is the share of the longest possible iteration that Above may not pass. Default: 0.92:
	// on an engine of small chunks no iteration is ever much longer than the SLO.
	Reach float64 `yaml:"reach"`
	// Pool is the share of the SLO's TPOT above which the mean of all runners' iterations is too
	// long. Default: 0.85.
	Pool float64 `yaml:"pool"`
	// Ours is the share of the SLO's TPOT that our lines running on a runner must take up of its
	// iterations to be recalled. Default: 0.02: where they take less, ending them helps nobody.
	Ours float64 `yaml:"ours"`
	// After is how long both signs must have been there. Default: 3s.
	After time.Duration `yaml:"after"`
	// Share is the most of a runner's lines that are recalled in a second. Default: 0.3.
	Share float64 `yaml:"share"`
	// Waste is the share of the tokens answered within the last hour that recalls may waste, those
	// for a full KV cache among them. Default: 0.015.
	Waste float64 `yaml:"waste"`
	// Hold is how long the lines stay down after. Default: 30s.
	Hold time.Duration `yaml:"hold"`
}

// DoubtConfig is what becomes of the allowance when nothing is seen of a runner: no token, no
// answer, no metrics that move.
type DoubtConfig struct {
	// Soft is from when on nothing rises. Default: 15s.
	Soft time.Duration `yaml:"soft"`
	// Hard is from when on the lines shrink. Default: 60s.
	Hard time.Duration `yaml:"hard"`
	// Half is how long it takes them to halve. Default: 30s.
	Half time.Duration `yaml:"half"`
	// Blind is the share of the last good number of lines that remains; 1 line always does.
	// Default: 0.1.
	Blind float64 `yaml:"blind"`
	// Dark is how many lines in a row must break before a runner counts as dark, carrying 1 line
	// every Retry. Default: 5.
	Dark int `yaml:"dark"`
	// Retry is how often a dark runner is tried. Default: 15s.
	Retry time.Duration `yaml:"retry"`
	// Recover is by how much the lines grow in a second after, as a share. Default: 0.1.
	Recover float64 `yaml:"recover"`
}

// FloorConfig is what deadlines may ask for.
type FloorConfig struct {
	// Share is the most of what is safe that deadlines can claim: they raise a runner's lines up to
	// this share of its caps, above what feedback grants. Prompts keep to the target all the same.
	// Default: 0.1.
	Share float64 `yaml:"share"`
	// Overdrive is what theta is multiplied by while a deadline presses, 1 or more. Default: 1:
	// interactive requests come first, whatever the deadline.
	Overdrive float64 `yaml:"overdrive"`
}

// Mistake is one that a test plants.
type Mistake uint8

// The mistakes that the reports of a simulation must show.
const (
	NoMistake         Mistake = iota
	SignFlipped               // long iterations bring more lines
	StalenessIgnored          // what is not seen is believed to be as it was
	FloorAboveSafety          // deadlines raise the allowance above the caps
	OwnLoadNotOwned           // our lines count as interactive
	LatenessForgotten         // late requests change nothing
)

func DefaultProbe() ProbeConfig {
	return ProbeConfig{
		Start: 2, PerRunner: 512, Streams: 512,
		Pace: PaceConfig{
			Gain: 0.1, GainUnstreamed: 0.03, Memory: 3 * time.Second, Save: 150 * time.Millisecond,
			Debt:    time.Second,
			Prompts: 4, Trickle: 0.02, Lives: 0.5, Slew: 0.03, Lag: 30 * time.Second, Apart: 1.25,
			Held: 1.5, Reach: 1.5,
		},
		Theta: LevelConfig{Start: 0.75, Least: 0.4, Most: 1, Gain: 0.007, Leap: 8, Fall: 0.03,
			Ease: 0.1, Eased: 0.4, Memory: time.Minute, Part: 0.75},
		Standing: 0.6,
		Prompt: LevelConfig{Start: 1024, Least: 256, Most: 4096, Gain: 0.05, Leap: 1, Fall: 0.1,
			Ease: 0.1, Eased: 0.7, Memory: time.Minute, Part: 0.25},
		Fit: FitConfig{Memory: 3000, Trust: 2, Unknown: 8},
		Reserve: ReserveConfig{KV: 0.85, Growth: 1.3, Tail: 2, Slots: 16, Window: time.Minute,
			Sigmas: 1},
		Brake: BrakeConfig{
			Above: 1.15, Reach: 0.92, Pool: 0.85, Ours: 0.02, After: 3 * time.Second, Share: 0.3,
			Waste: 0.015, Hold: 30 * time.Second,
		},
		Doubt: DoubtConfig{
			Soft: 15 * time.Second, Hard: time.Minute, Half: 30 * time.Second, Blind: 0.1, Dark: 5,
			Retry: 15 * time.Second, Recover: 0.1,
		},
		Floor:    FloorConfig{Share: 0.1, Overdrive: 1},
		Decrease: 0.7, DecreaseEvery: 2 * time.Second,
	}
}

// Validate reports every fault with the path of its field.
func (c ProbeConfig) Validate() error {
	var all faults.List
	all.AtLeast("start", c.Start, 1)
	all.AtLeast("per_runner", c.PerRunner, 1)
	all.AtLeast("per_pool", c.PerPool, 0)
	all.AtLeast("streams", c.Streams, 1)
	all.Within("pace.gain", c.Pace.Gain, 1e-4, 1)
	all.Within("pace.gain_unstreamed", c.Pace.GainUnstreamed, 1e-4, 1)
	all.Positive("pace.memory", c.Pace.Memory)
	all.Positive("pace.save", c.Pace.Save)
	all.Positive("pace.debt", c.Pace.Debt)
	all.AtLeast("pace.prompts", c.Pace.Prompts, 1)
	all.Within("pace.trickle", c.Pace.Trickle, 0, 1)
	all.Within("pace.lives", c.Pace.Lives, 0.01, 1000)
	all.Within("pace.slew", c.Pace.Slew, 0, 100)
	all.Positive("pace.lag", c.Pace.Lag)
	all.Within("pace.apart", c.Pace.Apart, 1, 1000)
	all.Within("pace.held", c.Pace.Held, 1, 1000)
	all.Within("pace.reach", c.Pace.Reach, 1.01, 100)
	c.Theta.validate(&all, "theta", 0.01, 2)
	all.Within("standing", c.Standing, 0.01, 2)
	c.Prompt.validate(&all, "prompt", 1, 1<<20)
	all.AtLeast("fit.memory", c.Fit.Memory, 1)
	all.Within("fit.trust", c.Fit.Trust, 1, 100)
	all.Within("fit.unknown", c.Fit.Unknown, 1, 100)
	all.Within("reserve.kv", c.Reserve.KV, 0.01, 1)
	all.Within("reserve.growth", c.Reserve.Growth, 1, 100)
	all.Within("reserve.tail", c.Reserve.Tail, 0, 10)
	all.AtLeast("reserve.slots", c.Reserve.Slots, 0)
	all.Positive("reserve.window", c.Reserve.Window)
	all.Within("reserve.sigmas", c.Reserve.Sigmas, 0, 10)
	all.Within("brake.above", c.Brake.Above, 0.1, 100)
	all.Within("brake.pool", c.Brake.Pool, 0.1, 100)
	all.Within("brake.ours", c.Brake.Ours, 0, 1)
	all.Within("brake.reach", c.Brake.Reach, 0.1, 1)
	all.Positive("brake.after", c.Brake.After)
	all.Within("brake.share", c.Brake.Share, 0, 1)
	all.Within("brake.waste", c.Brake.Waste, 0, 1)
	all.Positive("brake.hold", c.Brake.Hold)
	all.Positive("doubt.soft", c.Doubt.Soft)
	if c.Doubt.Hard < c.Doubt.Soft {
		all.Add("doubt.hard", "is %v, must not be less than soft, %v", c.Doubt.Hard,
			c.Doubt.Soft)
	}
	all.Positive("doubt.half", c.Doubt.Half)
	all.Within("doubt.blind", c.Doubt.Blind, 0, 1)
	all.AtLeast("doubt.dark", c.Doubt.Dark, 1)
	all.Positive("doubt.retry", c.Doubt.Retry)
	all.Within("doubt.recover", c.Doubt.Recover, 0.001, 100)
	all.Within("floor.share", c.Floor.Share, 0, 1)
	all.Within("floor.overdrive", c.Floor.Overdrive, 1, 2)
	all.Within("decrease", c.Decrease, 0.01, 0.99)
	if c.DecreaseEvery < 0 {
		all.Add("decrease_every", "is %v, must not be negative", c.DecreaseEvery)
	}
	return all.Err()
}

func (c LevelConfig) validate(all *faults.List, path string, least, most float64) {
	all.Within(path+".least", c.Least, least, most)
	all.Within(path+".most", c.Most, c.Least, most)
	all.Within(path+".start", c.Start, c.Least, c.Most)
	all.Within(path+".gain", c.Gain, 0, 1)
	all.Within(path+".leap", c.Leap, 1, 100)
	all.Within(path+".fall", c.Fall, 0, 0.9)
	all.Within(path+".ease", c.Ease, 0, 10)
	all.Within(path+".eased", c.Eased, 0, 0.9)
	all.Positive(path+".memory", c.Memory)
	all.Within(path+".part", c.Part, 0.01, 1)
}
