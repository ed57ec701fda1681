package autoscale

import (
	"errors"
	"fmt"
	"time"
)

// Config sets how many replicas are requested, and when. Start from DefaultConfig.
type Config struct {
	// Policy is slack (replicas for deadlines that the forecast harvest would miss), interactive
	// (no replicas for deadlines), queue_length, request_rate, separate or static. Default: slack.
	Policy string `yaml:"policy"`
	// Down sets when replicas are removed.
	Down DownConfig `yaml:"down"`
	// QueueLength configures the policy queue_length.
	QueueLength QueueLengthConfig `yaml:"queue_length"`
	// RequestRate configures the policy request_rate.
	RequestRate RequestRateConfig `yaml:"request_rate"`
	// Separate configures the policy separate.
	Separate SeparateConfig `yaml:"separate"`

	// Record names a file to which the daemon appends every decision with what it was based on, so
	// that tidefill simulate --decisions FILE can decide again, with other settings. A file of 256
	// MiB becomes FILE.1. It contains IDs of batches and names of tenants, models and runners.
	// Empty: nothing is recorded. Default: empty.
	Record string `yaml:"record"`

	// The following are no keys: tests and the laboratory set them.

	// Step is the interval between decisions while nothing happens. It limits how late a change of
	// traffic is noticed. Default: 30s, the default polling interval of KEDA.
	Step time.Duration `yaml:"-"`
	// Start describes how long replicas take to start.
	Start StartConfig `yaml:"-"`
	// Deadline sets when replicas are bought for deadlines, for the policy slack.
	Deadline DeadlineConfig `yaml:"-"`
	// Forecast sets how interactive traffic is predicted.
	Forecast ForecastConfig `yaml:"-"`
	// Harvest sets how the batch work of a replica is predicted.
	Harvest HarvestConfig `yaml:"-"`
}

// ForecastConfig sets how interactive traffic is predicted.
type ForecastConfig struct {
	// Smooth is the time over which the current rate is averaged. Default: 5m, long enough to
	// average bursts. Burst allows for them.
	Smooth time.Duration
	// Memory is how long today's difference from the usual day is expected to last. Default: 1h.
	Memory time.Duration
	// Learn is the weight of each new day in the usual day, above 0 to 1. Default: 0.5, so that a
	// week ago hardly counts.
	Learn float64
	// Judge is the time over which past forecasts are compared, to choose between the usual day and
	// the current rate. Default: 2h.
	Judge time.Duration
	// Ahead is how long beyond a cold start the replicas must suffice: the time to notice a change,
	// decide, and receive a request for replicas. Default: 5m.
	Ahead time.Duration
	// Band is the share added to the forecast before enough of its errors are known. Afterwards the
	// 0.95 quantile of the errors of a day is added. Default: 0.12.
	Band float64
	// MinBand is the least share added afterwards. Default: 0.03.
	MinBand float64
	// Burst is the ratio of peaks of some seconds to the mean rate, at least 1. Replicas are sized
	// for the peaks. Default: 2.5, which the prompts of public chat traces reach over 10 seconds.
	Burst float64
}

// HarvestConfig sets how the batch work of a replica is predicted.
type HarvestConfig struct {
	// Target is the share of the TPOT objective that flow control makes iterations take, above 0 to
	// 1. Default: 0.8.
	Target float64
	// Share is the share of the harvest of the cost model that is expected before any was measured.
	// Default: 0.85.
	Share float64
	// MinShare is the lower bound of the measured share. A share beyond the bounds means that
	// something is broken. Default: 0.2.
	MinShare float64
	// MaxShare is the upper bound of the measured share. Default: 1.5.
	MaxShare float64
	// Memory is the time over which the share is measured. Default: 1h, which outlasts a change of
	// jobs.
	Memory time.Duration
	// Trust is the weight of Share in the measured share, as time at the predicted rate. Default:
	// 10m.
	Trust time.Duration
	// Busy is how long the work left must last for the share to be measured. Default: 5m, since the
	// last lines of a job can't fill every replica.
	Busy time.Duration
	// KV is the share of the KV cache that may be used. Default: 0.85.
	KV float64
	// Slots is the number of sequences kept free for interactive requests. Default: 16.
	Slots int
}

// StartConfig describes how long replicas take to start.
type StartConfig struct {
	// Cold is the expected time of a start before any was measured. Default: 3m, a 70B model on a
	// warm node.
	Cold time.Duration
	// Quantile of the last starts is the expected time of the next. Default: 0.9.
	Quantile float64
	// Starts is the number of last starts that are measured. Default: 20.
	Starts int
	// GiveUp is after how many times the expected time a start is given up. Default: 3.
	GiveUp float64
}

// DeadlineConfig sets when replicas are bought for deadlines.
type DeadlineConfig struct {
	// Guard is how long before its deadline a job is planned to be done, in addition to the time of
	// its last lines. Default: 2m.
	Guard time.Duration
	// Lines is the time kept free for a job's last lines to finish, in mean times of a line. The
	// time of the job's longest line so far is kept free if that is more. Default: 3.
	Lines float64
	// MinUse is the shortest useful time of a replica before the guard, in cold starts. With less
	// it is not worth its own start, unless a deadline is at risk. Default: 1.
	MinUse float64
	// Uncertainty is the share by which the work may exceed its estimate, and the harvest fall
	// below its own. Replicas are bought for the estimates, so that free harvest is not replaced by
	// paid. But they are never bought so late that the uncertainty could not be made up for with
	// all replicas except Reserve at once. Default: 0.10.
	Uncertainty float64
	// Reserve is the share of all replicas that are not counted on to make up for the uncertainty.
	// Default: 0.10.
	Reserve float64
	// Surplus is the share of the work that free harvest may do beyond its estimate. Running
	// replicas are kept for work that would have to be bought even then. Default: 0.20.
	Surplus float64
	// UnknownFactor is by how much the work of a job may exceed its estimate, at least, as long as
	// fewer than Sample of its lines were answered, or fewer than are in flight, of which the short
	// ones finish first. Answers of an unseen job may also be as long as half their limit, as 3,072
	// tokens without one, or half as long again as those of any job of the model. One replica is
	// started early enough to measure it. Default: 6, the ratio of the longest kind of answer of a
	// service to the mean of all.
	UnknownFactor float64
	// Sample is the number of answered lines of a job from which its estimate is trusted. Default:
	// 50.
	Sample int
	// SpotSlack is how many cold starts must remain before a deadline for replicas that may be
	// reclaimed to count for it. Default: 2.
	SpotSlack float64
	// Horizon is how far ahead is predicted. Default: 336h, two weeks.
	Horizon time.Duration
}

// DownConfig sets when replicas are removed.
type DownConfig struct {
	// Hold is how long fewer replicas must suffice before any is removed. Default: 10m.
	Hold time.Duration `yaml:"hold"`
	// BatchHold is the same for a pool without interactive traffic. Default: 5m.
	BatchHold time.Duration `yaml:"batch_hold"`

	DownTuning `yaml:"tuning"`

	// The following are no keys: tests set them.

	// Dry is the same for such a pool when no work is left. Default: 0: keeping it for another job
	// cost more than the starts that it saved.
	Dry time.Duration `yaml:"-"`
	// Share of a pool's replicas, at least one, may be removed in the time Every. Default: 0.10 in
	// a minute, so that a mistake of the forecast is noticed before it costs much.
	Share float64 `yaml:"-"`
	// Every is the time in which a share may be removed.
	Every time.Duration `yaml:"-"`
}

// DownTuning sets what a replica that shall go is worth.
type DownTuning struct {
	// Drain is how long lines in flight may keep a replica that shall go. After that it is no
	// longer reported as wanted, and lines that it loses are sent again. Default: 10m, so that few
	// answers that are paid for are lost.
	Drain time.Duration `yaml:"drain"`
}

// DefaultConfig requests replicas by deadline.
func DefaultConfig() Config {
	return Config{
		Policy: "slack",
		Step:   30 * time.Second,
		Start:  StartConfig{Cold: 3 * time.Minute, Quantile: 0.9, Starts: 20, GiveUp: 3},
		Deadline: DeadlineConfig{
			Guard: 2 * time.Minute, Lines: 3, MinUse: 1, Uncertainty: 0.10, Reserve: 0.10,
			Surplus: 0.20, UnknownFactor: 6, Sample: 50, SpotSlack: 2, Horizon: 14 * 24 * time.Hour,
		},
		Down: DownConfig{Hold: 10 * time.Minute, BatchHold: 5 * time.Minute, Share: 0.10,
			Every: time.Minute, DownTuning: DownTuning{Drain: 10 * time.Minute}},
		QueueLength: QueueLengthConfig{LinesPerReplica: 10_000, Stabilization: 5 * time.Minute},
		RequestRate: RequestRateConfig{PerReplica: 2.5, Margin: 0.1},
		Separate:    SeparateConfig{Within: 2 * time.Hour},
		Forecast: ForecastConfig{
			Smooth: 5 * time.Minute, Memory: time.Hour, Learn: 0.5, Judge: 2 * time.Hour,
			Ahead: 5 * time.Minute, Band: 0.12, MinBand: 0.03, Burst: 2.5,
		},
		Harvest: HarvestConfig{
			Target: 0.8, Share: 0.85, MinShare: 0.2, MaxShare: 1.5, Memory: time.Hour,
			Trust: 10 * time.Minute, Busy: 5 * time.Minute, KV: 0.85, Slots: 16,
		},
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
	within := func(path string, x, least, most float64) {
		check(x >= least && x <= most, path, "is %v, must be from %v to %v", x, least, most)
	}
	if _, err := policies.Get(c.Policy); err != nil {
		faults = append(faults, fmt.Errorf("policy: %w", err))
	}
	check(c.Down.Hold >= 0 && c.Down.BatchHold >= 0, "down",
		"hold %v and batch_hold %v must not be negative", c.Down.Hold, c.Down.BatchHold)
	check(c.Down.Drain >= 0, "down.tuning.drain", "is %v, must not be negative", c.Down.Drain)
	check(c.QueueLength.LinesPerReplica >= 1, "queue_length.lines_per_replica",
		"is %d, must be at least 1", c.QueueLength.LinesPerReplica)
	check(c.QueueLength.Stabilization >= 0, "queue_length.stabilization",
		"is %v, must not be negative", c.QueueLength.Stabilization)
	within("request_rate.per_replica", c.RequestRate.PerReplica, 1e-3, 1e6)
	within("request_rate.margin", c.RequestRate.Margin, 0, 10)
	positive("separate.within", c.Separate.Within)
	return errors.Join(faults...)
}
