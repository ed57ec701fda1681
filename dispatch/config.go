package dispatch

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// Config configures the sending of lines. Start from DefaultConfig.
type Config struct {
	// Retry sets which lines are sent again.
	Retry plan.RetryConfig `yaml:"retry"`
	// RequestTimeout limits one request to a runner, from sending to the last byte of its answer.
	// Default: 30m.
	RequestTimeout time.Duration `yaml:"request_timeout"`
	// CancelGrace sets how long lines in flight may finish after their batch was stopped by a limit
	// of its own, or cancelled with finish_in_flight; then they are aborted. Those of batches that
	// are cancelled otherwise, or that expire, are aborted at once. Default: 30s.
	CancelGrace time.Duration `yaml:"cancel_grace"`
	// Memory limits the bytes of lines, answers and results that are held in memory: a third for
	// lines that were read ahead or are in flight, a third for answers while they are received, a
	// third for results that are not durable yet. Beyond it, lines are read again from their file
	// when they are sent, answers go to temporary files in the data directory, and results wait for
	// the disk. At least 3 MiB. Default: 24 MiB.
	Memory int64 `yaml:"memory"`
	// MaxAnswerBytes limits the body of an answer; a line with a longer one fails. An answer of
	// /v1/embeddings may have four times as many. At most 255 MiB. Default: 16 MiB.
	MaxAnswerBytes int64 `yaml:"max_answer_bytes"`
	// WaitForModels makes batches wait whose model no runner serves, instead of failing them. The
	// daemon sets it by api.unknown_models. Default: false.
	WaitForModels bool `yaml:"-"`
	// Drain limits the time for lines in flight to finish at shutdown. The daemon sets it to
	// shutdown.drain. Default: 30s.
	Drain time.Duration `yaml:"-"`
	// Inline configures interactive requests that pass through. The daemon sets it by inline.
	Inline plan.InlineConfig `yaml:"-"`

	Tuning `yaml:"tuning"`
}

// Tuning sets the pace of dispatching.
type Tuning struct {
	// Plan holds those of the planner.
	Plan plan.Tuning `yaml:",inline"`
	// ChunkLines limits the lines that are claimed together. Fewer are claimed of batches that are
	// created while many others run. Default: 1024.
	ChunkLines int `yaml:"chunk_lines"`
	// LeaseTTL sets how long after its last renewal the lease of a dispatcher ends, and other
	// processes may take over its lines. A shorter time recovers sooner from a crash and tolerates
	// less of a pause. At least 3s. Default: 15s.
	LeaseTTL time.Duration `yaml:"lease_ttl"`
	// ModelsEvery sets the interval at which upstreams are asked which models they serve. Default:
	// 10s.
	ModelsEvery time.Duration `yaml:"models_every"`
	// PollEvery sets the interval at which the store is asked for changes of which no notification
	// was received. Default: 1s.
	PollEvery time.Duration `yaml:"poll_every"`
	// LearnedEvery sets the interval at which what flow control has learned of the pools is saved,
	// for the next start, and what interactive requests have used. Default: 1m.
	LearnedEvery time.Duration `yaml:"learned_every"`
	// ProgressEvery sets the interval at which the progress of batches is updated in the API.
	// Default: 250ms.
	ProgressEvery time.Duration `yaml:"progress_every"`
	// RefusedFor is that of [finish.Finalizer]. It is no key: tests set it.
	RefusedFor time.Duration `yaml:"-"`
}

// PlanConfig returns the planner's part of the configuration.
func (c Config) PlanConfig() plan.Config {
	return plan.Config{Retry: c.Retry, Tuning: c.Plan, Inline: c.Inline}
}

// DefaultConfig returns the documented defaults.
func DefaultConfig() Config {
	planning := plan.DefaultConfig()
	return Config{
		Retry:          planning.Retry,
		RequestTimeout: 30 * time.Minute,
		CancelGrace:    30 * time.Second,
		Memory:         24 << 20,
		MaxAnswerBytes: 16 << 20,
		Drain:          30 * time.Second,
		Inline:         planning.Inline,
		Tuning: Tuning{
			Plan:          planning.Tuning,
			ChunkLines:    1024,
			LeaseTTL:      15 * time.Second,
			ModelsEvery:   10 * time.Second,
			PollEvery:     time.Second,
			LearnedEvery:  time.Minute,
			ProgressEvery: 250 * time.Millisecond,
		},
	}
}

// Validate reports every value that is out of range.
func (c Config) Validate() error {
	faults := []error{c.PlanConfig().Validate()}
	positive := func(name string, ok bool) {
		if !ok {
			faults = append(faults, fmt.Errorf("%s: must be positive", name))
		}
	}
	positive("request_timeout", c.RequestTimeout > 0)
	faults = append(faults, c.checkMemory()...)
	positive("tuning.chunk_lines", c.ChunkLines > 0)
	positive("tuning.models_every", c.ModelsEvery > 0)
	positive("tuning.poll_every", c.PollEvery > 0)
	positive("tuning.learned_every", c.LearnedEvery > 0)
	positive("tuning.progress_every", c.ProgressEvery > 0)
	if c.LeaseTTL < 3*time.Second {
		faults = append(faults, fmt.Errorf("tuning.lease_ttl: is %v, must be at least 3s so that "+
			"one slow write does not lose the lease", c.LeaseTTL))
	}
	if c.CancelGrace < 0 || c.Drain < 0 {
		faults = append(faults, errors.New("cancel_grace and drain: must not be negative"))
	}
	return errors.Join(faults...)
}

const (
	minMemory = 3 << 20
	maxAnswer = 255 << 20 // what a journal's record may hold, less what a result line has besides
	// embeddingsFactor is the length of an answer of embeddings, of which one has a vector for each
	// of up to 2,048 inputs, over that of other answers.
	embeddingsFactor = 4
	// chunkBytes limits the bytes of input lines that are claimed together, which are held in
	// memory: a quarter of what there is for lines by default. A longer line is a chunk of its own.
	chunkBytes = 2 << 20
	// dialTimeout limits the time to connect to a runner: several retries of TCP.
	dialTimeout = 10 * time.Second
	// maxModels limits the models that an upstream may list. A gateway with more is one that
	// invents names. Those of upstreams[].models do not count.
	maxModels = 1000
)

func (c Config) checkMemory() (faults []error) {
	if c.Memory < minMemory {
		faults = append(faults, fmt.Errorf(
			"memory: is %d, must be at least %d (3 MiB) for lines to be sent at speed", c.Memory,
			minMemory))
	}
	if c.MaxAnswerBytes <= 0 || c.MaxAnswerBytes > maxAnswer {
		faults = append(faults, fmt.Errorf(
			"max_answer_bytes: is %d, must be from 1 to %d (255 MiB)", c.MaxAnswerBytes,
			maxAnswer))
	}
	return faults
}
