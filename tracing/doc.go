// Package tracing exports what happens to batches as OpenTelemetry traces, over OTLP/HTTP. It is
// the only package that uses OpenTelemetry.
//
// A batch is one trace of these spans:
//
//   - batch, from its creation to its end. The process that ends the batch exports it.
//   - chunk, from the time when its lines are read until it is done or given back.
//   - line, one attempt of a sampled line.
//
// The ids of a trace and of the spans of batches and chunks are hashes of the batch's id. So all
// processes agree on them, restarted ones too, and nothing is stored. A batch that was created with
// a traceparent belongs to that trace.
//
// A nil [Tracer] is one that is off. Its methods and those of what it returns do nothing then.
package tracing
