// Package report turns runs of the simulator into what people read: figures over seeds, scores,
// goals met and missed, shares of oracles, a table for the terminal, result.json, and a page that
// opens without a network.
//
// The caller runs policies and oracles, fills a Report with what they did, and calls Judge once.
// Everything else follows from that: the package is pure and writes only where it is told to, so
// the same runs give the same bytes. Nothing is left out because it looks bad: a goal without a
// figure is a goal that is not met.
package report
