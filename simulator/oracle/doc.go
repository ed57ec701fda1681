// Package oracle says how well anyone could have done, so that a policy's result can be quoted as a share of the best possible.
//
// An oracle may know what no policy can: the length of answers, the arrivals to come, the engine's memory. What it finds is a
// Bound. A policy that beats one has found a mistake of the oracle, and the report says so.
package oracle
