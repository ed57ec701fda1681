package kube

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
)

// Config sets how the cluster of pools with the section kubernetes and of ConfigMaps is reached.
// Start from DefaultConfig.
type Config struct {
	// Kubeconfig names a file with the address of the API server and with credentials, for a daemon
	// outside the cluster. Empty: the service account of the daemon's pod. Default: empty.
	Kubeconfig string `yaml:"kubeconfig"`
	// Namespace is where pools are looked for unless they name their own, and where the Lease is.
	// Empty: the namespace of the daemon's pod, or that of the kubeconfig's context. Default:
	// empty.
	Namespace string `yaml:"namespace"`
	// Lease names the Lease that the daemon holds which decides on replicas; others wait. Daemons
	// with the same store use the same name. Empty: every daemon decides. Default: tidefill.
	Lease string `yaml:"lease"`

	// The following are no keys: tests set them.

	// LeaseDuration is the time for which a Lease is respected after its holder was last heard of,
	// in whole seconds.
	LeaseDuration time.Duration `yaml:"-"`
	// LeaseRenew is the time for which the holder tries to renew the Lease before it stops
	// deciding. It must be shorter than LeaseDuration.
	LeaseRenew time.Duration `yaml:"-"`
	// LeaseRetry is the interval of attempts to get or renew the Lease, less than 5/6 of
	// LeaseRenew.
	LeaseRetry time.Duration `yaml:"-"`
	// Settle is the time for which changes are collected before the runners of a pool are
	// published.
	Settle time.Duration `yaml:"-"`
	// MetricsEvery is the interval at which pools[].kubernetes.metrics are read.
	MetricsEvery time.Duration `yaml:"-"`
}

const (
	// The times of the Lease are those of Kubernetes's own controllers.
	leaseDuration, leaseRenew, leaseRetry = 15 * time.Second, 10 * time.Second, 2 * time.Second
	// settle is longer than the events of one rollout step take to arrive, and short against the
	// start of a runner.
	settle = 100 * time.Millisecond
	// metricsEvery is the shortest interval at which metrics adapters have newer values.
	metricsEvery = 15 * time.Second
	// requestsPerSecond limits the requests to the API server, as client-go does for controllers.
	requestsPerSecond = 20
)

// RequestTimeout limits one request to the API server, watches excepted.
const RequestTimeout = 10 * time.Second

// DefaultConfig uses the service account of the daemon's pod.
func DefaultConfig() Config {
	return Config{Lease: "tidefill", LeaseDuration: leaseDuration, LeaseRenew: leaseRenew,
		LeaseRetry: leaseRetry, Settle: settle, MetricsEvery: metricsEvery}
}

// Validate reports every fault with the path of its field.
func (c Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf(format, args...))
	}
	if c.Namespace != "" && !isLabel(c.Namespace) {
		fault("namespace: is %q, must be the name of a namespace: at most 63 lower-case letters, "+
			"digits and dashes", c.Namespace)
	}
	if c.Lease != "" && !isName(c.Lease) {
		fault("lease: is %q, must be the name of an object: lower-case letters, digits, dashes "+
			"and dots", c.Lease)
	}
	return errors.Join(faults...)
}

// isLabel reports whether a text can be the name of a namespace or a Service.
func isLabel(name string) bool {
	return len(validation.ValidateNamespaceName(name, false)) == 0
}

// isName reports whether a text can be the name of an object.
func isName(name string) bool {
	return len(validation.NameIsDNSSubdomain(name, false)) == 0
}
