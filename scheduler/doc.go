// Package scheduler decides whose line starts next.
//
// A Queue orders the jobs of one pool in four steps:
//
//  1. Named queues. Rules on tenant, model, priority and window assign each job to a named queue.
//     An Arbiter (strict, weighted) chooses between the queues that have a job to offer.
//  2. Classes. In a queue, urgent jobs go before regular ones. Jobs that are past their deadline,
//     or cannot meet it, go last. A job becomes urgent a guard before the latest instant at which
//     its work, with a reserve, can start. Only time moves a job from class to class. A heap of
//     these instants says which job moves next and when, so no job is ranked again because time has
//     passed.
//  3. Shares. The tenants of regular jobs share by work, in turns. Where urgent jobs overtake the
//     others, the jobs of a tenant share too. A few lines do not wait for turns. Late jobs share in
//     the same way. Urgent jobs go in the order of their rank.
//  4. Policy. The urgent jobs of a queue, and the jobs of a tenant that do not share, go by rank,
//     then by priority, creation time and ID.
//
// A rank does not depend on the current time. For instance, slack ranks by the latest instant at
// which the work can start, not by the time until then. So the heaps stay valid as time passes, and
// a job is ranked again only when it changes (Put).
//
// Work is counted in milliseconds of engine iteration, not in lines, because a line with a long
// answer loads an engine much more than one with a short answer.
//
// The package is pure: it reads no clock, starts no goroutine, uses no randomness, and returns the
// same results for the same calls. A Queue belongs to one goroutine. To add a policy, implement
// Policy and call Register; package schedulertest tests it.
package scheduler
