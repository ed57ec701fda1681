package telemetry

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"
)

// source is something that is read at regular intervals.
type source struct {
	target, kind string // labels of the Reader's own metrics
	every        time.Duration
	fastest      time.Duration // where reading is cheap; 0: every
	timeout      time.Duration // of one read; 0: read limits itself
	read         func(context.Context) ([]Sample, error)
}

const (
	// longestPause limits the interval at which a source that fails is retried. The interval
	// doubles with each failure.
	longestPause = 5 * time.Second
	// unknownPause is the interval at which a server that never had the page is asked again. It may
	// have it after an upgrade.
	unknownPause = time.Minute
	// goneAfter is the time after which a target counts as gone of which a source that gives
	// samples shows none. A target is an engine of a gateway, a pod or a model.
	goneAfter = 10 * time.Minute
)

// poll reads a source until ctx is done. It logs when the state of the source changes.
func (r *Reader) poll(ctx context.Context, s source) {
	seen := map[string]time.Time{} // last sample by target
	defer func() { r.forget(s, seen) }()
	known := state("") // as logged and published; empty: the source is not degraded
	pause, pace := s.every, pace{source: s}
	wait := time.Duration(rand.Float64() * r.cfg.Jitter * float64(s.every))
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		began := time.Now()
		samples, err := s.readInTime(ctx)
		pace.took(time.Since(began))
		if ctx.Err() != nil {
			return
		}
		now := stateOf(err)
		switch now {
		case "", stateFrozen, stateNoData, stateStarting, stateMixed: // the server answers
			pause = pace.pause()
		default:
			r.gauges.failed(s)
			pause = min(2*pause, max(longestPause, s.every))
			// A page that was there comes back: the ingress in front of it is reloaded, say.
			if now == stateNoPage && len(seen) == 0 {
				pause = max(unknownPause, s.every)
			}
		}
		if now != known {
			r.changeState(ctx, s, now, err)
			known = now
		}
		for _, sample := range samples {
			if sample.Reading != nil {
				seen[r.gauges.sampled(s, sample)] = time.Now()
			}
			r.deps.OnSample(sample)
		}
		if len(samples) > 0 {
			r.forgetGone(s, seen)
		}
		wait = time.Duration(float64(pause) * (1 + r.cfg.Jitter*(rand.Float64()-0.5)))
	}
}

func (s *source) readInTime(ctx context.Context) ([]Sample, error) {
	if s.timeout > 0 {
		limited, cancel := context.WithTimeout(ctx, s.timeout)
		defer cancel()
		ctx = limited
	}
	return s.read(ctx)
}

// forget removes what is published of a source that is read no more.
func (r *Reader) forget(s source, targets map[string]time.Time) {
	r.degraded.set(s, "")
	r.gauges.setState(s, "")
	for target := range targets {
		r.gauges.forget(target, s.kind)
	}
}

// forgetGone removes when targets were last sampled that a source does not show any more. Those of
// runnerQuery are configured, and forgotten when they no longer are.
func (r *Reader) forgetGone(s source, seen map[string]time.Time) {
	for target, at := range seen {
		if s.kind != pagesKind && time.Since(at) > goneAfter {
			r.gauges.timestamp.DeleteLabelValues(target, s.kind)
			delete(seen, target)
		}
	}
}

// changeState logs and publishes the state of a source. A source that is degraded keeps nothing
// from working: policies know the age of what they use. Capabilities are optional, so a runner
// without them is not degraded.
func (r *Reader) changeState(ctx context.Context, s source, now state, err error) {
	level, message := slog.LevelWarn, "telemetry source failed, retrying"
	switch {
	case now == "":
		r.log.InfoContext(ctx, "telemetry source recovered", "target", s.target, "source", s.kind)
		r.setState(s, now)
		return
	case now == stateNoPage && s.kind == "capabilities":
		level = slog.LevelDebug
	case now == stateFrozen || now == stateNoData || now == stateMixed:
		message = "telemetry source degraded"
	case now == stateStarting:
		level, message = slog.LevelInfo, "a runner starts or stops"
	}
	r.log.Log(ctx, level, message, "target", s.target, "source", s.kind, "state", string(now),
		"error", err)
	if level == slog.LevelDebug {
		now = ""
	}
	r.setState(s, now)
}

// setState publishes the state of a source; empty: it is not degraded.
func (r *Reader) setState(s source, now state) {
	r.degraded.set(s, now)
	r.gauges.setState(s, now)
}
