// Package flows decides which interactive request of a pool starts next, and which one is turned
// away.
//
// A flow is the requests of one use case, tenant and class. A Queue holds those that wait, in three
// steps:
//
//  1. Classes. A Policy chooses the class that may start. The policy strict serves a class before
//     those listed after it, but for the places that are reserved for others.
//  2. Shares. The use cases of a class share by work in proportion to their weights, and so do the
//     tenants of a use case. [scheduler.Queue] counts the shares, as it does for batches.
//  3. Time. The requests of a flow go in the order in which they came.
//
// The number of requests that wait is bounded. If it is reached, the lowest class gives up its
// newest request first.
//
// The package is pure: it reads no clock, starts no goroutine, uses no randomness, and returns the
// same results for the same calls. A Queue belongs to one goroutine. To add a policy, implement
// Policy and call Register; package flowstest tests it.
package flows
