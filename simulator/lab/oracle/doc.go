// Package oracle computes bounds of what any policy could achieve, so that a policy's result can be
// stated as a share of the best possible.
//
// An oracle may know what no policy can: the length of answers, the arrivals to come, the engine's
// memory. Its result is a Bound. If a policy beats a bound, the oracle is wrong, and the report
// says so.
//
// Engine is oracle E, a scheduler inside each engine instead of a policy. Gateway is oracle G, a
// search for the best schedule of what the daemon itself can control. Fluid is oracle F, a
// calculation in which requests flow at constant rates. Package gpuhours has the linear program for
// replicas.
package oracle
