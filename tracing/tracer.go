package tracing

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/tidefill/tidefill/store"
)

// Tracer exports spans in the background. It is safe for concurrent use.
type Tracer struct {
	provider *sdktrace.TracerProvider
	exporter *exporter
	tracer   trace.Tracer
	sample   float64
	log      *slog.Logger

	maxWaiting int64         // limits exporter.waiting
	dropped    atomic.Uint64 // spans beyond it
}

// Lost are the spans that were not exported.
type Lost struct {
	QueueFull uint64 // too many others waited
	Failed    uint64 // the collector did not take them
}

// Lost counts the spans that were not exported since the start.
func (t *Tracer) Lost() Lost {
	if t == nil {
		return Lost{}
	}
	return Lost{QueueFull: t.dropped.Load(), Failed: t.exporter.failed.Load()}
}

// New returns a tracer, or nil if traces are off. cfg must be valid.
func New(cfg Config, version string, log *slog.Logger) (*Tracer, error) {
	target, err := cfg.target()
	if target == "" || err != nil {
		return nil, err
	}
	if protocol := cmp.Or(os.Getenv(tracesProtocolVariable),
		os.Getenv(protocolVariable)); protocol == "grpc" {
		log.Warn("exporting traces over HTTP although "+protocolVariable+" is grpc, which is not "+
			"supported; name the port for HTTP, which is 4318 as a rule", "url", target)
	}
	ctx := context.Background()
	client, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(target))
	if err != nil {
		return nil, fmt.Errorf("export traces to %s: %w; check the variables OTEL_EXPORTER_OTLP_*",
			target, err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(semconv.ServiceName("tidefill"), semconv.ServiceVersion(version)),
		resource.WithFromEnv())
	if err != nil {
		log.Warn("could not read all attributes of the service that traces name; check "+
			"OTEL_RESOURCE_ATTRIBUTES", "error", err)
	}
	t := &Tracer{exporter: &exporter{SpanExporter: client, log: log}, sample: cfg.Sample, log: log,
		maxWaiting: maxQueue()}
	t.provider = sdktrace.NewTracerProvider(sdktrace.WithResource(about),
		sdktrace.WithIDGenerator(generator{}), sdktrace.WithSampler(sdktrace.AlwaysSample()),
		sdktrace.WithBatcher(t.exporter, sdktrace.WithMaxQueueSize(int(t.maxWaiting))))
	t.tracer = t.provider.Tracer("github.com/tidefill/tidefill",
		trace.WithInstrumentationVersion(version))
	log.Info("exporting traces", "url", target, "sample", cfg.Sample)
	return t, nil
}

// maxQueue returns the number of spans that may wait for their export.
func maxQueue() int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(os.Getenv("OTEL_BSP_MAX_QUEUE_SIZE")), 10, 32)
	if err != nil || n <= 0 {
		return sdktrace.DefaultMaxQueueSize
	}
	return n
}

// lastExport limits the time of the export that Close waits for.
const lastExport = 3 * time.Second

// Close exports the spans that are left, as far as the collector takes them in time.
func (t *Tracer) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastExport)
	defer cancel()
	err := t.provider.Shutdown(ctx)
	if ctx.Err() != nil {
		t.log.Warn("could not export the last spans in time", "limit", lastExport, "error", err)
		_ = t.exporter.Shutdown(ctx) // ends the export, too
		return nil
	}
	return err
}

// span is one span to export.
type span struct {
	name       string
	kind       trace.SpanKind
	own        trace.SpanContext
	parent     trace.SpanContext // not valid: there is none
	begun      time.Time
	ended      time.Time
	failed     string // why it failed; empty: it did not
	attributes []attribute.KeyValue
}

// export hands a span to the SDK, which exports it in the background. Too many that wait are
// dropped here, because the SDK does not count those that it drops.
func (t *Tracer) export(s span) {
	if t.exporter.waiting.Add(1) > t.maxWaiting {
		t.exporter.waiting.Add(-1)
		t.dropped.Add(1)
		return
	}
	ctx := context.WithValue(context.Background(), idsKey{}, s.own)
	if s.parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, s.parent)
	}
	_, made := t.tracer.Start(ctx, s.name, trace.WithSpanKind(s.kind),
		trace.WithTimestamp(s.begun), trace.WithAttributes(s.attributes...))
	if s.failed != "" {
		made.SetStatus(codes.Error, s.failed)
	}
	made.End(trace.WithTimestamp(s.ended))
}

// Attributes of Tidefill's own.
const (
	batchKey     = attribute.Key("tidefill.batch.id")
	stateKey     = attribute.Key("tidefill.batch.state")
	completedKey = attribute.Key("tidefill.batch.completed")
	failedKey    = attribute.Key("tidefill.batch.failed")
	chunkKey     = attribute.Key("tidefill.chunk")
	linesKey     = attribute.Key("tidefill.lines")
	lineKey      = attribute.Key("tidefill.line")
	attemptKey   = attribute.Key("tidefill.attempt")
	outcomeKey   = attribute.Key("tidefill.outcome")
)

// Attributes of the conventions for generative AI, which semconv has no more.
const (
	modelKey  = attribute.Key("gen_ai.request.model")
	inputKey  = attribute.Key("gen_ai.usage.input_tokens")
	outputKey = attribute.Key("gen_ai.usage.output_tokens")
)

// BatchEnded exports the span of a batch that has ended. The process that has ended the batch calls
// it, once the store has accepted the end.
func (t *Tracer) BatchEnded(b *store.Batch) {
	if t == nil {
		return
	}
	ids, failed := idsOf(b), ""
	if b.State == store.Failed {
		failed = string(b.State)
	}
	t.export(span{name: "batch", own: ids.own, parent: ids.parent, begun: b.CreatedAt,
		ended: b.EndedAt(), failed: failed, attributes: []attribute.KeyValue{
			batchKey.String(b.ID), stateKey.String(string(b.State)), linesKey.Int(b.Lines()),
			completedKey.Int(b.Counts.Completed), failedKey.Int(b.Counts.Failed)}})
}
