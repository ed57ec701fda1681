// Package emulator serves the model of an inference engine over HTTP, in real
// time and without a GPU: OpenAI's inference routes with streaming, vLLM's
// metrics, the Model Runner API, and faults on demand.
//
// With an engine profile the timing is that of simulator/engine, whose
// iterations one goroutine (Server.Run) drives; handlers submit sequences to
// it under a lock and wait for their tokens. With the profile "instant" there is
// no engine: answers come at once, at little more than the cost of net/http.
//
// Answers are made up but reproducible: output length and text follow from the
// seed and the content of the request, whatever the order of arrival.
//
// Two routes are for tests alone: /admin/faults sets what goes wrong,
// /admin/requests tells what was received, so that a client's claim to have
// sent each line once can be proven from the other side.
package emulator
