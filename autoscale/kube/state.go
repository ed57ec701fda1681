package kube

import (
	"cmp"
	"time"

	"github.com/tidefill/tidefill/autoscale"
)

// State is what is known of a pool. Nobody changes a State once it is published.
type State struct {
	Pool string
	// Runners are the model servers of the pool, by name. They include those that start and those
	// that end.
	Runners []Runner
	// Replicas are the pods of the pool, and an element for each that its target wants and that
	// does not exist yet; see IsMissing.
	Replicas []autoscale.Replica
	// Desired is the number of replicas that the target should have. Unknown: -1.
	Desired int
	// Age is the time for which the API server has not been heard of. 0: the state is current.
	Age time.Duration
	// Err says what is wrong: why the state is not current, or what of the configuration does not
	// fit the cluster. Nil: nothing.
	Err error
}

// Unknown is a State.Desired that is not known.
const Unknown = -1

// Runner is a model server: a port of a pod, or an endpoint of a Service.
type Runner struct {
	// Name is that of the pod, followed by a colon and the port if the pod has several runners. An
	// endpoint that is no pod has its address and port as its name.
	Name string
	// Pod is the name of the pod, which is the ID of its replica.
	Pod string
	// URL is the base of the runner. Empty: it has no address yet.
	URL string
	// MetricsPath is where it serves its metrics, as its pod says; empty: /metrics.
	MetricsPath string
	// Pool is the name of the pool.
	Pool string
	// Role says which side of a pool with separate prefill and decode the runner is.
	Role Role
	// Phase is Starting until the runner is ready, and Draining as soon as its pod ends: it gets no
	// new lines, and those in flight go on.
	Phase autoscale.Phase
	// Since is when the phase began. A Starting runner was requested then.
	Since time.Time
}

// MetricsURL returns the page of the runner's metrics.
func (r Runner) MetricsURL() string { return r.URL + cmp.Or(r.MetricsPath, "/metrics") }

// Role is a part of the work of a model.
type Role string

// The roles.
const (
	Both    Role = ""        // prompts and tokens
	Prefill Role = "prefill" // prompts
	Decode  Role = "decode"  // tokens
)
