package tracing

import (
	"context"
	"log/slog"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// exporter logs the errors of an exporter, each cause once a minute. The SDK would report them to a
// handler that all daemons of the process share. The SDK calls it from one goroutine.
type exporter struct {
	sdktrace.SpanExporter
	log    *slog.Logger
	causes map[string]*cause

	waiting atomic.Int64  // spans that were not exported yet
	failed  atomic.Uint64 // spans that were lost
}

// cause is what is known of one cause of failed exports.
type cause struct {
	logged time.Time
	spans  int // that were lost for it since
}

const (
	logEvery = time.Minute
	// maxCauses limits the causes within logEvery. More of them are not logged.
	maxCauses = 16
	// maxLogged limits the bytes of an error in the log, since it may hold a collector's answer.
	maxLogged = 512
)

// ExportSpans implements [sdktrace.SpanExporter]. It returns no error.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	defer e.waiting.Add(-int64(len(spans)))
	if err := e.SpanExporter.ExportSpans(ctx, spans); err != nil {
		e.failed.Add(uint64(len(spans)))
		e.lost(err, len(spans), time.Now())
	}
	return nil
}

// lost counts spans that were not exported, and logs why if that is due.
func (e *exporter) lost(err error, spans int, now time.Time) {
	name := rootOf(err).Error()
	c := e.causes[name]
	if c == nil {
		maps.DeleteFunc(e.causes, func(_ string, c *cause) bool {
			return now.Sub(c.logged) >= logEvery
		})
		if len(e.causes) >= maxCauses {
			return
		}
		if e.causes == nil {
			e.causes = map[string]*cause{}
		}
		c = &cause{}
		e.causes[name] = c
	}
	c.spans += spans
	if now.Sub(c.logged) < logEvery {
		return
	}
	text := err.Error()
	if len(text) > maxLogged {
		text = strings.ToValidUTF8(text[:maxLogged], "") + "…"
	}
	e.log.Warn("could not export spans to the collector, they are lost; check tracing.endpoint",
		"spans", c.spans, "error", text)
	*c = cause{logged: now}
}

// rootOf returns the innermost error, whose text does not change with ports and times.
func rootOf(err error) error {
	for {
		var inner error
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			inner = e.Unwrap()
		case interface{ Unwrap() []error }:
			for _, inner = range e.Unwrap() {
				break
			}
		}
		if inner == nil {
			return err
		}
		err = inner
	}
}
