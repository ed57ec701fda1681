package tracing

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/tidefill/tidefill/store"
)

// traceparentHeader is the header of W3C Trace Context that names the parent of a request's span.
const traceparentHeader = "traceparent"

// batchIDs are the ids of a batch's span.
type batchIDs struct {
	own trace.SpanContext
	// parent is that of the request that created the batch. Not valid: the span is a root.
	parent trace.SpanContext
	seed   uint64 // of the choice of lines
}

// idsOf returns the ids of a batch's span.
func idsOf(b *store.Batch) batchIDs {
	digest := sha256.Sum256([]byte(b.ID))
	traceID := trace.TraceID(digest[:16])
	parent := parse(b.Options.Traceparent)
	if parent.IsValid() {
		traceID = parent.TraceID()
	}
	return batchIDs{parent: parent, own: sampled(traceID, trace.SpanID(digest[16:24])),
		seed: binary.BigEndian.Uint64(digest[24:])}
}

// chunkSpanID returns the id of a chunk's span. Each claim of the chunk has a span of its own.
func chunkSpanID(c store.Chunk) trace.SpanID {
	digest := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%d", c.Batch, c.Index, c.Epoch))
	return trace.SpanID(digest[:8])
}

func sampled(t trace.TraceID, s trace.SpanID) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: t, SpanID: s,
		TraceFlags: trace.FlagsSampled})
}

// parse reads the value of a traceparent. One that is not valid makes a context that is not.
func parse(traceparent string) trace.SpanContext {
	if traceparent == "" {
		return trace.SpanContext{}
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(),
		propagation.MapCarrier{traceparentHeader: traceparent})
	return trace.SpanContextFromContext(ctx)
}

// format returns the value of a traceparent.
func format(t trace.TraceID, s trace.SpanID, flags trace.TraceFlags) string {
	return "00-" + t.String() + "-" + s.String() + "-" + flags.String()
}

// Traceparent returns the traceparent of a request, to be stored with the batch that it creates.
// Empty: there is no valid one, or traces are off.
func (t *Tracer) Traceparent(h http.Header) string {
	if t == nil {
		return ""
	}
	c := parse(h.Get(traceparentHeader))
	if !c.IsValid() {
		return ""
	}
	return format(c.TraceID(), c.SpanID(), c.TraceFlags())
}

// isSampled reports whether a line has spans. All processes and attempts agree, since it depends on
// the batch and the line alone.
func isSampled(seed uint64, line uint32, share float64) bool {
	const increment, first, second = 0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb
	z := seed + (uint64(line)+1)*increment // SplitMix64
	z = (z ^ z>>30) * first
	z = (z ^ z>>27) * second
	return float64((z^z>>31)>>11)/(1<<53) < share
}

// generator gives spans the ids that their context has.
type generator struct{}

type idsKey struct{}

// NewIDs implements [sdktrace.IDGenerator].
func (g generator) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	own := ctx.Value(idsKey{}).(trace.SpanContext)
	return own.TraceID(), own.SpanID()
}

// NewSpanID implements [sdktrace.IDGenerator].
func (g generator) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	_, id := g.NewIDs(ctx)
	return id
}
