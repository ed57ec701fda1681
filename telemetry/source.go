package telemetry

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"
)

// source is something that is read at regular intervals.
type source struct {
	target, kind string // labels of the Reader's own metrics
	every        time.Duration
	timeout      time.Duration // of one read
	read         func(context.Context) ([]Sample, error)
}

const (
	// longestPause limits the interval at which a source that fails is retried. The interval
	// doubles with each failure.
	longestPause = 5 * time.Second
	// unknownPause is the interval at which a server without the page is asked again. It may have
	// the page after an upgrade.
	unknownPause = time.Minute
)

// poll reads a source until ctx is done. It logs when the source begins to fail and when it
// recovers.
func (r *Reader) poll(ctx context.Context, s source) {
	failure := "" // as logged; empty: the source does not fail
	pause := s.every
	wait := time.Duration(rand.Float64() * r.cfg.Jitter * float64(s.every))
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		reading, cancel := context.WithTimeout(ctx, s.timeout)
		samples, err := s.read(reading)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			if failure != "" {
				r.log.InfoContext(ctx, "telemetry source recovered", "target", s.target,
					"source", s.kind)
			}
			failure, pause = "", s.every
		default:
			r.gauges.failed(s)
			r.logFailure(ctx, s, err, &failure)
			pause = min(2*pause, max(longestPause, s.every))
			if errors.Is(err, errUnknownPage) {
				pause = max(unknownPause, s.every)
			}
		}
		for _, sample := range samples {
			r.gauges.sampled(s, sample)
			r.deps.OnSample(sample)
		}
		wait = time.Duration(float64(pause) * (1 + r.cfg.Jitter*(rand.Float64()-0.5)))
	}
}

// logFailure logs why a source fails, once for each reason. Capabilities are optional, so a runner
// without them is logged at the level Debug.
func (r *Reader) logFailure(ctx context.Context, s source, err error, logged *string) {
	level, reason := slog.LevelWarn, "no answer"
	if errors.Is(err, errUnknownPage) {
		reason = "no page"
		if s.kind == "capabilities" {
			level = slog.LevelDebug
		}
	}
	if reason != *logged {
		*logged = reason
		r.log.Log(ctx, level, "telemetry source failed, retrying", "target", s.target,
			"source", s.kind, "error", err)
	}
}
