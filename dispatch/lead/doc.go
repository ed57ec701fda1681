// Package lead decides which runners and models a process leads, so that processes that share a
// store never fill the same runner twice.
//
//   - [Registration] is this process's registration with the store, of which all claims are part.
//   - [Lease] renews the registration, and acquires, confirms and resigns the leadership of groups
//     of runners and models: one goroutine each for renewing and for leading.
//   - [Leadership] holds what is led. The lease changes it; whoever claims chunks reads it.
//   - [Fleet] holds the runners with their models, and what the planner was told of them.
//   - [Follower] reads what other processes have done of the batches of models that they lead.
//
// The lease needs three things of other parts: that results are counted again before it leads, that
// chunks of resigned models are given back, and what was learned of pools before.
package lead
