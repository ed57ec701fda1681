// Package oracle says how well anyone could have done, so that a policy's result can be quoted as a
// share of the best possible.
//
// An oracle may know what no policy can: the length of answers, the arrivals to come, the engine's
// memory. What it finds is a Bound. A policy that beats one has found a mistake of the oracle, and
// the report says so.
//
// Engine is E, a scheduler inside each engine, in place of a policy. Gateway is G, a search for the
// best timetable of what the daemon itself can do. Fluid is F, a calculation in which everything
// flows evenly. Package gpuhours has the linear program for replicas. docs/oracles.md tells how
// each is found, and what it misses.
package oracle
