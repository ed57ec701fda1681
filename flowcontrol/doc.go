// Package flowcontrol decides how many batch lines each runner of a pool may carry now, and names
// what limits them.
//
// A Controller is told what happens (runners come and go, lines start, are answered, are shed) and
// answers with an Allowance. It is pure: time comes with each call, it starts no goroutine, draws
// no randomness, and answers the same for the same calls. It belongs to one goroutine.
//
// probe keeps iterations as long as interactive requests can bear: see docs/policies.md. fixed
// carries a set number of lines per runner. aimd finds each runner's number by what the runner
// sheds: one line more for every limit's worth of answers, a share less after a 429 or 503. Neither
// of these two looks at latency, so neither protects interactive traffic on an engine that queues
// without end instead of shedding: their upper limits do. schedule follows a timetable, of probe's
// targets or of lines.
//
// The others are there to compare with and for those who want just that. budget and saturation
// start what the load shown by metrics leaves free and gradient follows the latency of answers, as
// published and with the published defaults; model is probe's law without its feedback; none and
// unlimited are the two ends.
//
// Every controller honours Retry-After: the runner that sent it gets no new line until that time is
// over, and a runner that sheds without it is left alone for a moment.
package flowcontrol
