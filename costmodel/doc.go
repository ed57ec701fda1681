// Package costmodel predicts the cost of LLM inference: the time of an engine's iterations, how
// many batch lines fit beside interactive traffic, and the work of a line.
//
// A Model holds seven coefficients that tidefill profile fit measures for a model on a kind of GPU.
// The simulator runs its engines by it, flow control and autoscaling predict with it, and planning
// counts work in its unit, milliseconds of engine iteration.
//
// The package is pure arithmetic. It imports the standard library and package internal/portable,
// which keeps the results the same to the last bit on every processor of an architecture.
package costmodel
