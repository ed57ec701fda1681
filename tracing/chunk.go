package tracing

import (
	"encoding/binary"
	"math/rand/v2"
	"net/url"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/tidefill/tidefill/store"
)

// Chunk is the span of a claimed chunk. Nil: traces are off.
type Chunk struct {
	tracer *Tracer
	chunk  store.Chunk
	batch  batchIDs
	own    trace.SpanContext
	begun  time.Time
	// unsampled is the traceparent of lines without spans.
	unsampled string
}

// Chunk begins the span of a chunk that this process has claimed.
func (t *Tracer) Chunk(b *store.Batch, c store.Chunk) *Chunk {
	if t == nil {
		return nil
	}
	ids := idsOf(b)
	own := sampled(ids.own.TraceID(), chunkSpanID(c))
	return &Chunk{tracer: t, chunk: c, batch: ids, own: own, begun: time.Now(),
		unsampled: format(own.TraceID(), own.SpanID(), 0)}
}

// Done exports the span of a chunk that is done.
func (c *Chunk) Done() { c.end("done") }

// GivenBack exports the span of a chunk that was given back with lines left.
func (c *Chunk) GivenBack() { c.end("given_back") }

func (c *Chunk) end(outcome string) {
	if c == nil {
		return
	}
	c.tracer.export(span{name: "chunk", own: c.own, parent: c.batch.own, begun: c.begun,
		ended: time.Now(), attributes: []attribute.KeyValue{
			batchKey.String(c.chunk.Batch), chunkKey.Int(c.chunk.Index),
			linesKey.Int(c.chunk.Count), modelKey.String(c.chunk.Model),
			outcomeKey.String(outcome)}})
}

// Line is the span of one attempt of a line. The zero value is one with traces off.
type Line struct {
	// Traceparent is what the engine gets; empty: traces are off. Of a line without spans it names
	// the chunk's span, with the flag that it is not recorded.
	Traceparent string

	chunk *Chunk // nil: the line has no span
	own   trace.SpanContext
	begun time.Time
}

// Line begins the span of an attempt of a line of the chunk, if it is sampled.
func (c *Chunk) Line(number uint32, begun time.Time) Line {
	switch {
	case c == nil:
		return Line{}
	case !isSampled(c.batch.seed, number, c.tracer.sample):
		return Line{Traceparent: c.unsampled}
	}
	var id trace.SpanID
	binary.BigEndian.PutUint64(id[:], rand.Uint64()|1) // 0 is no id
	own := sampled(c.own.TraceID(), id)
	return Line{Traceparent: format(own.TraceID(), id, trace.FlagsSampled), chunk: c, own: own,
		begun: begun}
}

// Sampled reports whether the attempt has a span.
func (l *Line) Sampled() bool { return l.chunk != nil }

// Attempt says what an attempt of a line was, and how it ended.
type Attempt struct {
	Line                      uint32
	Attempt                   int // from 1
	Outcome                   string
	Failed                    bool
	Status                    int // of the answer; 0: there was none
	InputTokens, OutputTokens int // 0: unknown
}

// End exports the span of an attempt, if it has one. server is the URL of the runner; nil: it was
// not sent.
func (l *Line) End(a Attempt, server *url.URL) {
	if !l.Sampled() {
		return
	}
	chunk := l.chunk.chunk
	s := span{name: "line", kind: trace.SpanKindClient, own: l.own, parent: l.chunk.own,
		begun: l.begun, ended: time.Now(), attributes: []attribute.KeyValue{
			batchKey.String(chunk.Batch), lineKey.Int64(int64(a.Line)), attemptKey.Int(a.Attempt),
			outcomeKey.String(a.Outcome), modelKey.String(chunk.Model)}}
	if a.Failed {
		s.failed = a.Outcome
	}
	if server != nil {
		s.attributes = append(s.attributes, semconv.ServerAddress(server.Hostname()))
		if port, err := strconv.Atoi(server.Port()); err == nil {
			s.attributes = append(s.attributes, semconv.ServerPort(port))
		}
	}
	if a.Status > 0 {
		s.attributes = append(s.attributes, semconv.HTTPResponseStatusCode(a.Status))
	}
	if a.InputTokens+a.OutputTokens > 0 {
		s.attributes = append(s.attributes, inputKey.Int(a.InputTokens),
			outputKey.Int(a.OutputTokens))
	}
	l.chunk.tracer.export(s)
}
