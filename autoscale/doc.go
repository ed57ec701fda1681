// Package autoscale says how many replicas the pools of a model should have for batch deadlines to
// be met at the least cost, and which deadline can't be.
//
// A [Controller] is fed the state of the world every few seconds and answers with replicas per pool
// and a verdict per job. It reads no clock, starts nothing and logs nothing: the daemon shows its
// answers to KEDA, the simulator acts on them, and both run the same code.
//
// # Model
//
// Work is counted in milliseconds of engine time, as package dispatch/plan counts it. Interactive
// traffic comes first: what a replica can do for batches, its harvest, is what the traffic leaves.
// A pool that serves interactive traffic has replicas for it anyway, and their harvest costs
// nothing. Only what that harvest can't do before a deadline is worth another replica, and only as
// late as is safe.
//
// One controller decides for the pools that serve one model, and one goroutine owns it.
package autoscale
