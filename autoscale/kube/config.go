package kube

import (
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
)

// Config sets how the cluster of pools with the section kubernetes is reached. Start from
// DefaultConfig.
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

	Tuning `yaml:"tuning"`
}

// Tuning holds the constants of the connection and of the Lease.
type Tuning struct {
	// LeaseDuration is how long a Lease is respected after its holder was last heard of. Default:
	// 15s.
	LeaseDuration time.Duration `yaml:"lease_duration"`
	// LeaseRenew is how long the holder tries to renew the Lease before it stops deciding. It must
	// be shorter than lease_duration. Default: 10s.
	LeaseRenew time.Duration `yaml:"lease_renew"`
	// LeaseRetry is the interval of attempts to get or renew the Lease. Default: 2s.
	LeaseRetry time.Duration `yaml:"lease_retry"`
	// Settle is how long changes are collected before the runners of a pool are published. Default:
	// 100ms.
	Settle time.Duration `yaml:"settle"`
	// Timeout limits one request to the API server, watches excepted. Default: 10s.
	Timeout time.Duration `yaml:"timeout"`
	// MetricsEvery is the interval at which pools[].kubernetes.metrics are read. Metrics adapters
	// have newer values every 15 to 60 seconds. Default: 15s.
	MetricsEvery time.Duration `yaml:"metrics_every"`
	// RequestsPerSecond limits the requests to the API server. Default: 20.
	RequestsPerSecond float64 `yaml:"requests_per_second"`
}

// DefaultConfig uses the service account of the daemon's pod.
func DefaultConfig() Config {
	return Config{Lease: "tidefill", Tuning: Tuning{
		LeaseDuration: 15 * time.Second, LeaseRenew: 10 * time.Second, LeaseRetry: 2 * time.Second,
		Settle: 100 * time.Millisecond, Timeout: 10 * time.Second, MetricsEvery: 15 * time.Second,
		RequestsPerSecond: 20,
	}}
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
	for _, d := range []struct {
		key   string
		value time.Duration
	}{
		{"lease_duration", c.LeaseDuration}, {"lease_renew", c.LeaseRenew},
		{"lease_retry", c.LeaseRetry}, {"timeout", c.Timeout}, {"metrics_every", c.MetricsEvery},
	} {
		if d.value <= 0 {
			fault("tuning.%s: is %v, must be positive", d.key, d.value)
		}
	}
	if c.LeaseDuration < time.Second && c.LeaseDuration > 0 {
		fault("tuning.lease_duration: is %v, must be at least 1s: a Lease counts whole seconds",
			c.LeaseDuration)
	}
	if c.LeaseRenew >= c.LeaseDuration {
		fault("tuning.lease_renew: is %v, must be shorter than lease_duration, which is %v",
			c.LeaseRenew, c.LeaseDuration)
	}
	// client-go waits up to a fifth longer than the interval.
	if c.LeaseRetry*12/10 >= c.LeaseRenew {
		fault("tuning.lease_retry: is %v, must be less than 5/6 of lease_renew, which is %v",
			c.LeaseRetry, c.LeaseRenew)
	}
	if c.Settle < 0 {
		fault("tuning.settle: is %v, must not be negative", c.Settle)
	}
	if !(c.RequestsPerSecond > 0) {
		fault("tuning.requests_per_second: is %v, must be positive", c.RequestsPerSecond)
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
