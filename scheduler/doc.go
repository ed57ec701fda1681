// Package scheduler decides whose line goes next.
//
// A Queue orders the jobs of one pool in four steps, from the outside in:
//
//  1. Named queues. Rules on tenant, model, priority and window put each job into one of them; an Arbiter (strict, weighted)
//     chooses between those that have something to offer.
//  2. Classes. Inside a queue, urgent jobs go before regular ones and jobs past their deadline, or unable to meet it, go last. A job becomes urgent when
//     the instant at which its work must start comes within its guard. Time alone moves jobs from class to class: a heap of those
//     instants says which and when, so nothing is ranked again because the clock went on.
//  3. Tenants. Regular jobs share by deficit round robin in work units, late ones likewise. Urgent jobs don't share: their
//     deadlines decide.
//  4. The Policy. A tenant's jobs, and a queue's urgent jobs, go by rank; then by creation, then by ID.
//
// A rank does not depend on the clock: slack is the latest instant at which the work can start, not
// the time until then. So the heaps stay heaps, and a job is ranked again only when it changes
// (Put).
//
// Work is counted in milliseconds of engine iteration cost, not in lines: a line with a long answer
// and one that only scores a prompt load an engine very differently.
//
// The package is pure: it reads no clock, starts no goroutine, draws no randomness, and answers the
// same for the same calls. A Queue belongs to one goroutine. To add a policy, implement Policy and
// Register it; package schedulertest holds the contract as a test suite.
package scheduler
