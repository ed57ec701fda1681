// Package emulator serves the model of an inference engine over HTTP, in real time and without a
// GPU: OpenAI's inference routes with streaming, metrics of vLLM, SGLang or TensorRT-LLM with their
// cadences, the Model Runner API, and faults on demand.
//
// With an engine profile the timing is that of simulator/engine, whose iterations run in one
// goroutine (Server.Run). Handlers submit sequences to it under a lock and wait for their tokens.
// With the profile "instant" there is no engine: responses are sent at once, at little more than
// the cost of net/http.
//
// The text is generated but reproducible: its length and content follow from the seed and the
// content of the request, whatever the order of arrival.
//
// Three routes are for tests alone: /admin/faults sets faults, /admin/requests reports the received
// requests, so that a test can prove from the runner's side that a client sent each line once, and
// /admin/timing reports how late iterations ended, which says whether the machine is fast enough.
package emulator
