// Package autoscale computes the number of replicas that the pools of a model need so that batch
// deadlines are met at the least cost. It also finds the deadlines that cannot be met.
//
// A [Controller] receives the state of the pools and jobs every few seconds. It returns the number
// of replicas for each pool and a verdict on each job. It is pure: it reads no clock, starts no
// goroutine and logs nothing. Its caller publishes the numbers (for instance to KEDA) or applies
// them, as the simulator does.
//
// # Model
//
// Work is counted in milliseconds of engine iteration, as in package costmodel. Interactive traffic
// comes first. The harvest of a replica is the work that it can do for batches beside the traffic.
// The replicas of a pool that serves interactive traffic exist anyway, so their harvest costs
// nothing. A replica is added only for work that this harvest cannot finish before a deadline, and
// as late as is safe.
//
// # Policies
//
// Config.Policy names the policy. Each is a Controller in a file of its own, and controller.go
// registers all of them. A policy may use the tracker, which knows the traffic, the cold starts and
// the harvest of each pool. Only slack makes forecasts, so Fleet.Peek answers for no other policy.
// TestDecisionsAreValid runs every policy.
//
// One controller decides for all pools that serve a model, and one goroutine owns it.
package autoscale
