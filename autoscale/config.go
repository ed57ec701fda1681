package autoscale

import (
	"errors"
	"fmt"
	"time"
)

// Config says how replicas are asked for. Start from DefaultConfig.
type Config struct {
	// Policy is the law: slack (what deadlines need beyond the forecast harvest), interactive
	// (deadlines buy nothing), queue_length, separate or static. Default: slack.
	Policy string `yaml:"policy"`
	// Step is how often to decide when nothing happens; it also bounds how late an unforeseen
	// change is seen. Default: 30s, as often as KEDA asks unless told otherwise.
	Step time.Duration `yaml:"step"`
	// Forecast is about interactive traffic.
	Forecast ForecastConfig `yaml:"forecast"`
	// Harvest is about what batch lines get out of a replica.
	Harvest HarvestConfig `yaml:"harvest"`
	// Start is about replicas that are asked for.
	Start StartConfig `yaml:"start"`
	// Deadline is about what is bought for deadlines, for the policy slack.
	Deadline DeadlineConfig `yaml:"deadline"`
	// Down is about letting replicas go.
	Down DownConfig `yaml:"down"`
	// QueueLength is for the policy queue_length.
	QueueLength QueueLengthConfig `yaml:"queue_length"`
	// Separate is for the policy separate.
	Separate SeparateConfig `yaml:"separate"`
}

// ForecastConfig says how interactive traffic is expected to go on.
type ForecastConfig struct {
	// Smooth is over how long the present rate is averaged. Default: 5m, long enough to average
	// bursts, which the size of a replica allows for.
	Smooth time.Duration `yaml:"smooth"`
	// Memory is how long today's difference from the usual day is expected to last. Default: 1h.
	Memory time.Duration `yaml:"memory"`
	// Learn is how much of the usual day each new day replaces, above 0 to 1. Default: 0.5, so that
	// a week ago hardly counts.
	Learn float64 `yaml:"learn"`
	// Judge is how long the forecasts of the past are looked at to say whether the usual day is a
	// better guide than the present. Default: 2h.
	Judge time.Duration `yaml:"judge"`
	// Ahead is how long beyond a cold start the replicas must suffice: the time to notice, decide
	// and be asked. Default: 5m.
	Ahead time.Duration `yaml:"ahead"`
	// Band is the share added to the forecast before enough errors are known; afterwards the 0.95
	// quantile of the errors of a day is. Default: 0.12.
	Band float64 `yaml:"band"`
	// BandLeast is the least that is added afterwards. Default: 0.03.
	BandLeast float64 `yaml:"band_least"`
	// Burst is by how much traffic exceeds its mean over some seconds, at least 1: a replica is
	// reckoned to carry as much less. Default: 2.5, which the prompts of public traces of chat
	// reach over 10 seconds.
	Burst float64 `yaml:"burst"`
}

// HarvestConfig says what batch lines are expected to get out of a replica.
type HarvestConfig struct {
	// Target is the share of the time per output token promised that flow control steers iterations
	// to, above 0 to 1. Default: 0.8.
	Target float64 `yaml:"target"`
	// Share is how much of the engine law's harvest is achieved before anything was learnt.
	// Default: 0.85.
	Share float64 `yaml:"share"`
	// ShareLeast and ShareMost bound what is learnt; what lies beyond says that something is
	// broken, not how much is harvested. Defaults: 0.2 and 1.5.
	ShareLeast float64 `yaml:"share_least"`
	// ShareMost is the upper of the two bounds.
	ShareMost float64 `yaml:"share_most"`
	// Memory is over how long the share is learnt. Default: 1h, which rides out a change of jobs.
	Memory time.Duration `yaml:"memory"`
	// Trust is how much harvest at the predicted rate Share itself counts for. Default: 10m.
	Trust time.Duration `yaml:"trust"`
	// KV is the share of the KV cache that may be filled. Default: 0.85.
	KV float64 `yaml:"kv"`
	// Slots is how many sequences are kept free for interactive requests. Default: 16.
	Slots int `yaml:"slots"`
}

// StartConfig is about replicas that are asked for.
type StartConfig struct {
	// Cold is how long a start takes before any was seen. Default: 3m, a 70B model on a warm node.
	Cold time.Duration `yaml:"cold"`
	// Quantile of the last Starts starts is what is reckoned with. Default: 0.9.
	Quantile float64 `yaml:"quantile"`
	// Starts is how many of the last starts are looked at. Default: 20.
	Starts int `yaml:"starts"`
	// GiveUp is after how many times that a start is given up. Default: 3.
	GiveUp float64 `yaml:"give_up"`
}

// DeadlineConfig is about what is bought for deadlines.
type DeadlineConfig struct {
	// Guard is how long before a deadline the work is to be done, in addition to the time of the
	// job's longest line so far, or Lines times a line's mean time if that is more: the last lines
	// end when they end. Defaults: 2m and 3.
	Guard time.Duration `yaml:"guard"`
	// Lines is how many times a line's mean time is kept free at least, for the last lines to end.
	// Default: 3.
	Lines float64 `yaml:"lines"`
	// LeastUse is for how many cold starts another replica must be of use before the guard to be
	// worth its own, unless a deadline is in doubt. Default: 1.
	LeastUse float64 `yaml:"least_use"`
	// Doubt is the share by which the work may be more, and the harvest less, than expected. What
	// is bought is bought for what is expected, so that free harvest is not replaced by paid; but
	// never so late that doubt could not be met any more with all replicas but Reserve, a share of
	// them, at once. Defaults: 0.10 and 0.10.
	Doubt float64 `yaml:"doubt"`
	// Reserve is the share of all replicas that is not reckoned with when doubt is to be made up
	// for.
	Reserve float64 `yaml:"reserve"`
	// Windfall is the share of the work that free harvest may turn out to do beyond what is
	// expected of it. Replicas that run are kept for what will have to be bought even then.
	// Default: 0.20.
	Windfall float64 `yaml:"windfall"`
	// Surprise is by how much the work of a job may be more as long as fewer than Sample of its
	// lines were answered, or fewer than are under way, of which the short ones come first. One
	// replica is started early enough to find out. Defaults: 6, a service's longest kind of answer
	// to the mean of all, and 50.
	Surprise float64 `yaml:"surprise"`
	// Sample is how many lines of a job must have been answered before they are believed.
	Sample int `yaml:"sample"`
	// SpotSlack is how many cold starts a deadline must leave for replicas that may be reclaimed to
	// count for it. Default: 2.
	SpotSlack float64 `yaml:"spot_slack"`
	// Horizon is how far ahead the future is looked at. Default: 336h, two weeks.
	Horizon time.Duration `yaml:"horizon"`
}

// DownConfig is about letting replicas go.
type DownConfig struct {
	// Hold is how long fewer replicas must do before there are fewer. Default: 10m.
	Hold time.Duration `yaml:"hold"`
	// BatchHold is the same for a pool without interactive traffic. Default: 5m.
	BatchHold time.Duration `yaml:"batch_hold"`
	// Dry is the same once no work is left. Keeping a replica pays if jobs come more often than a
	// start takes. Default: 0, for jobs hours apart.
	Dry time.Duration `yaml:"dry"`
	// Share of a pool's replicas, at least one, may go in a minute. Default: 0.10.
	Share float64 `yaml:"share"`
}

// DefaultConfig asks for replicas by deadline.
func DefaultConfig() Config {
	return Config{
		Policy: "slack",
		Step:   30 * time.Second,
		Forecast: ForecastConfig{
			Smooth: 5 * time.Minute, Memory: time.Hour, Learn: 0.5, Judge: 2 * time.Hour,
			Ahead: 5 * time.Minute,
			Band:  0.12, BandLeast: 0.03, Burst: 2.5,
		},
		Harvest: HarvestConfig{
			Target: 0.8, Share: 0.85, ShareLeast: 0.2, ShareMost: 1.5, Memory: time.Hour,
			Trust: 10 * time.Minute,
			KV:    0.85, Slots: 16,
		},
		Start: StartConfig{Cold: 3 * time.Minute, Quantile: 0.9, Starts: 20, GiveUp: 3},
		Deadline: DeadlineConfig{
			Guard: 2 * time.Minute, Lines: 3, LeastUse: 1, Doubt: 0.10, Reserve: 0.10,
			Windfall: 0.20, Surprise: 6, Sample: 50,
			SpotSlack: 2, Horizon: 14 * 24 * time.Hour,
		},
		Down:        DownConfig{Hold: 10 * time.Minute, BatchHold: 5 * time.Minute, Share: 0.10},
		QueueLength: QueueLengthConfig{LinesPerReplica: 10_000, Stabilization: 5 * time.Minute},
		Separate:    SeparateConfig{Within: 2 * time.Hour},
	}
}

// Validate reports every fault with the path of its field.
func (c Config) Validate() error {
	var faults []error
	check := func(ok bool, path, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf("%s: "+format, append([]any{path}, args...)...))
		}
	}
	positive := func(path string, d time.Duration) {
		check(d > 0, path, "is %v, must be positive", d)
	}
	share := func(path string, x float64) {
		check(x > 0 && x <= 1, path, "is %v, must be above 0 and at most 1", x)
	}
	within := func(path string, x, least, most float64) {
		check(x >= least && x <= most, path, "is %v, must be %v to %v", x, least, most)
	}
	if _, err := policies.Get(c.Policy); err != nil {
		faults = append(faults, fmt.Errorf("policy: %w", err))
	}
	positive("step", c.Step)

	f := c.Forecast
	positive("forecast.smooth", f.Smooth)
	positive("forecast.memory", f.Memory)
	share("forecast.learn", f.Learn)
	check(f.Judge >= slot && f.Judge <= day, "forecast.judge", "is %v, must be %v to %v", f.Judge,
		slot, day)
	check(f.Ahead >= 0, "forecast.ahead", "is %v, must not be negative", f.Ahead)
	within("forecast.band", f.Band, 0, 10)
	within("forecast.band_least", f.BandLeast, 0, 10)
	within("forecast.burst", f.Burst, 1, 100)

	h := c.Harvest
	share("harvest.target", h.Target)
	check(h.ShareLeast > 0 && h.ShareLeast <= h.Share && h.Share <= h.ShareMost &&
		h.ShareMost <= 10, "harvest.share",
		"is %v between share_least %v and share_most %v, must be in order, above 0 and at most 10",
		h.Share, h.ShareLeast, h.ShareMost)
	positive("harvest.memory", h.Memory)
	positive("harvest.trust", h.Trust)
	share("harvest.kv", h.KV)
	check(h.Slots >= 0, "harvest.slots", "is %d, must not be negative", h.Slots)

	s := c.Start
	positive("start.cold", s.Cold)
	share("start.quantile", s.Quantile)
	check(s.Starts >= 1, "start.starts", "is %d, must be at least 1", s.Starts)
	within("start.give_up", s.GiveUp, 1, 100)

	d := c.Deadline
	check(d.Guard >= 0, "deadline.guard", "is %v, must not be negative", d.Guard)
	within("deadline.lines", d.Lines, 0, 100)
	within("deadline.least_use", d.LeastUse, 0, 100)
	within("deadline.doubt", d.Doubt, 0, 1)
	within("deadline.reserve", d.Reserve, 0, 0.9)
	within("deadline.windfall", d.Windfall, 0, 1)
	within("deadline.surprise", d.Surprise, 1, 1000)
	check(d.Sample >= 0, "deadline.sample", "is %d, must not be negative", d.Sample)
	within("deadline.spot_slack", d.SpotSlack, 0, 100)
	check(d.Horizon >= time.Hour, "deadline.horizon", "is %v, must be at least an hour", d.Horizon)

	check(c.Down.Hold >= 0 && c.Down.BatchHold >= 0 && c.Down.Dry >= 0, "down",
		"hold %v, batch_hold %v and dry %v must not be negative", c.Down.Hold, c.Down.BatchHold,
		c.Down.Dry)
	share("down.share", c.Down.Share)
	check(c.QueueLength.LinesPerReplica >= 1, "queue_length.lines_per_replica",
		"is %d, must be at least 1", c.QueueLength.LinesPerReplica)
	check(c.QueueLength.Stabilization >= 0, "queue_length.stabilization",
		"is %v, must not be negative", c.QueueLength.Stabilization)
	positive("separate.within", c.Separate.Within)
	return errors.Join(faults...)
}
