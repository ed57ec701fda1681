// Package kube reads the runners of pools from Kubernetes, and acts on them.
//
// A [Cluster] watches what a pool's configuration names: the EndpointSlices of a Service, the pods
// of a label selector, or an InferencePool, and the object whose replicas an autoscaler sets. It
// publishes a [State] whenever that changes. While the API server is away, the last state is held
// and its age grows; nothing is dropped because Kubernetes can't be asked.
//
// A [ConfigMap] is read without pools, by a watch of its own.
//
// A Cluster also sets which pods a shrinking pool loses first (SetDeletionCosts), elects the daemon
// that acts (Lead), and reads the metrics APIs (Readings).
//
// # Ownership
//
// Each pool has one goroutine (follow.go), which alone composes and publishes the pool's state. It
// is woken by mirrors, copies of the objects of one kind, each kept current by a goroutine of
// client-go (mirror.go). compose.go is pure.
//
// Without pools that have the section kubernetes, a Cluster connects to nothing and does nothing.
package kube
