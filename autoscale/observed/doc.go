// Package observed is what is known of pools and jobs when their replicas are decided about, as the
// planner and whoever knows the replicas report it. The daemon and the simulator both gather it and
// both have it translated here to what [autoscale] decides on, so that neither sees a job or a pool
// otherwise than the other.
//
// A [Step] is a decision and what it was based on. The daemon writes its steps to the file
// autoscale.record, and the simulator decides on them again.
package observed
