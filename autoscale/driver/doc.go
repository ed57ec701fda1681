// Package driver sets the number of replicas of the configured pools in a running daemon.
//
// It is to the daemon what simulator/scaling.go is to a simulation: it gathers the state of pools
// and jobs, steps an [autoscale.Fleet], and sees to it that the decision is carried out. KEDA reads
// the numbers of replicas from the published [autoscale.Snapshot]; the dispatcher closes runners
// that are to go, and ranks batches that can't be met behind the others.
//
// Of several processes that share a store one decides. It keeps the snapshot in the store, and the
// others publish it as their own, so that all give the same answers.
package driver
