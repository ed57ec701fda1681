// Package keda is an external scaler of KEDA: a gRPC server that KEDA asks how many replicas the
// pools of a deployment should have.
//
// Every call is answered from the last [autoscale.Snapshot], in memory. While the state is not
// known, or is old, calls fail: KEDA leaves the replicas as they are after an error, and removes
// those at work after an answer of zero.
//
// The metric is a number of replicas with the target 1, of the type AverageValue, so the number is
// what KEDA's HPA asks for. It counts replicas that drain, and falls when one has no line left.
package keda
