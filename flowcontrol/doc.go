// Package flowcontrol decides how many batch lines each runner of a pool may carry now, and names what limits them.
//
// A Controller is told what happens (runners come and go, lines start, are answered, are shed) and answers with an Allowance. It is
// pure: time comes with each call, it starts no goroutine, draws no randomness, and answers the same for the same calls. It belongs
// to one goroutine.
//
// Two controllers stand here. fixed carries a set number of lines per runner. aimd finds each runner's number by what
// the runner sheds: one line more for every limit's worth of answers, a share less after a 429 or 503. Neither looks at latency, so
// neither protects interactive traffic on an engine that queues without end instead of shedding: their upper limits do.
//
// The others are laws that others publish, with their defaults, to compare with and for those who want just that: budget and saturation
// start what the load shown by metrics leaves free, gradient follows the latency of answers. none and unlimited are the two ends.
//
// Every controller honours Retry-After: the runner that sent it gets no new line until that time is over, and a runner that sheds
// without it is left alone for a moment.
package flowcontrol
