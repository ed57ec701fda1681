package keda

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/tidefill/tidefill/internal/httpserver"
)

// Config configures the server that KEDA asks.
type Config struct {
	// Listen is the address that KEDA's ScaledObjects name as scalerAddress, host:port. Empty: no
	// scaler is served. Default: empty.
	Listen string `yaml:"listen"`
	// TLS encrypts it. With client_ca_file KEDA must present a certificate, which a
	// TriggerAuthentication gives it; without, whoever reaches the address can ask.
	TLS TLSConfig `yaml:"tls"`

	Tuning Tuning `yaml:"tuning"`
}

// TLSConfig names the files of the scaler's TLS configuration.
type TLSConfig = httpserver.TLSConfig

// Tuning sets what depends on ScaledObjects.
type Tuning struct {
	// StaleAfter is the age from which the last decision is no answer any more. KEDA keeps the
	// replicas then, unless the ScaledObject has a fallback. At least 30s. Default: 5m.
	StaleAfter time.Duration `yaml:"stale_after"`

	// The following are no keys: tests set them.

	// ForgetAfter is how long a ScaledObject that does not ask any more keeps its pool from others,
	// and what it says of the pool stays in effect.
	ForgetAfter time.Duration `yaml:"-"`
	// ConnectionAge is the age at which connections and streams are ended, so that KEDA's are
	// spread over all daemons.
	ConnectionAge time.Duration `yaml:"-"`
	// CallLimit is the time after which a call fails that is not answered. KEDA itself would wait
	// without limit, and scale nothing meanwhile.
	CallLimit time.Duration `yaml:"-"`
}

const (
	// forgetAfter is several times the pollingInterval of ScaledObjects, 30 s by default.
	forgetAfter = 10 * time.Minute
	// connectionAge spreads KEDA's few connections within an hour after a daemon was added.
	connectionAge = 30 * time.Minute
	// callLimit is long for an answer from memory, and short against a pollingInterval.
	callLimit = 2 * time.Second
)

// minStaleAfter is the smallest StaleAfter. A process that does not decide has decisions that are
// up to 25 s old while all is well: who decides does so every 5 s and keeps an unchanged decision
// every 15 s, and the others look for it every 5 s.
const minStaleAfter = 30 * time.Second

// DefaultConfig serves no scaler.
func DefaultConfig() Config {
	return Config{Tuning: Tuning{StaleAfter: 5 * time.Minute, ForgetAfter: forgetAfter,
		ConnectionAge: connectionAge, CallLimit: callLimit}}
}

// Validate reports every fault with the path of its field.
func (c Config) Validate() error {
	var faults []error
	if _, port, err := net.SplitHostPort(c.Listen); c.Listen != "" && (err != nil || port == "") {
		faults = append(faults, fmt.Errorf("listen: %q is no address; write host:port, such as "+
			":9090", c.Listen))
	}
	if err := c.TLS.Validate(); err != nil {
		text := strings.ReplaceAll(err.Error(), "\n", "; ")
		faults = append(faults, fmt.Errorf("tls: %s", text))
	}
	if given := c.Tuning.StaleAfter; given < minStaleAfter {
		faults = append(faults, fmt.Errorf("tuning.stale_after: is %v, must be at least %v: "+
			"processes that do not decide have decisions that are up to 25s old while all is well",
			given, minStaleAfter))
	}
	return errors.Join(faults...)
}
