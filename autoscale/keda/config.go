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
	// TriggerAuthentication gives it.
	TLS TLSConfig `yaml:"tls"`

	Tuning Tuning `yaml:"tuning"`
}

// TLSConfig names the files of the scaler's TLS configuration. They are read again when they
// change.
type TLSConfig struct {
	// CertFile is the file with the certificate in PEM, followed by the intermediate certificates.
	// Empty: without TLS.
	CertFile string `yaml:"cert_file"`
	// KeyFile is the file with the private key of the certificate in PEM.
	KeyFile string `yaml:"key_file"`
	// ClientCAFile is the file with the authorities of clients in PEM. Empty: clients present no
	// certificate, and whoever reaches the address can ask.
	ClientCAFile string `yaml:"client_ca_file"`
}

// Tuning holds constants of the server.
type Tuning struct {
	// StaleAfter is the age from which the last decision is no answer any more. KEDA keeps the
	// replicas then, unless the ScaledObject has a fallback. At least 30s. Default: 5m.
	StaleAfter time.Duration `yaml:"stale_after"`
	// ForgetAfter is how long a ScaledObject that does not ask any more keeps its pool from others,
	// and what it says of the pool stays in effect. It must exceed the pollingInterval of
	// ScaledObjects. Default: 10m, several times as long as KEDA usually waits between two
	// questions.
	ForgetAfter time.Duration `yaml:"forget_after"`
	// ConnectionAge is the age at which connections and streams are ended, so that KEDA's are
	// spread over all daemons. Default: 30m.
	ConnectionAge time.Duration `yaml:"connection_age"`
	// CallLimit is the time after which a call fails that is not answered. KEDA itself would wait
	// without limit, and scale nothing meanwhile. Default: 2s.
	CallLimit time.Duration `yaml:"call_limit"`
}

// minStaleAfter is the smallest StaleAfter. A process that does not decide has decisions that are
// up to 25 s old while all is well: who decides does so every 5 s and keeps an unchanged decision
// every 15 s, and the others look for it every 5 s.
const minStaleAfter = 30 * time.Second

// DefaultConfig serves no scaler.
func DefaultConfig() Config {
	return Config{Tuning: Tuning{StaleAfter: 5 * time.Minute, ForgetAfter: 10 * time.Minute,
		ConnectionAge: 30 * time.Minute, CallLimit: 2 * time.Second}}
}

// Validate reports every fault with the path of its field.
func (c Config) Validate() error {
	var faults []error
	if _, port, err := net.SplitHostPort(c.Listen); c.Listen != "" && (err != nil || port == "") {
		faults = append(faults, fmt.Errorf("listen: %q is no address; write host:port, such as "+
			":9090", c.Listen))
	}
	if err := c.files().Validate(); err != nil {
		text := strings.ReplaceAll(err.Error(), "\n", "; ")
		faults = append(faults, fmt.Errorf("tls: %s", text))
	}
	for _, f := range []struct {
		key   string
		given time.Duration
	}{
		{"stale_after", c.Tuning.StaleAfter}, {"forget_after", c.Tuning.ForgetAfter},
		{"connection_age", c.Tuning.ConnectionAge}, {"call_limit", c.Tuning.CallLimit},
	} {
		if f.given < time.Second {
			faults = append(faults, fmt.Errorf("tuning.%s: is %v, must be at least 1s", f.key,
				f.given))
		}
	}
	if given := c.Tuning.StaleAfter; given >= time.Second && given < minStaleAfter {
		faults = append(faults, fmt.Errorf("tuning.stale_after: is %v, must be at least %v: "+
			"processes that do not decide have decisions that are up to 25s old while all is well",
			given, minStaleAfter))
	}
	return errors.Join(faults...)
}

func (c Config) files() httpserver.TLSConfig {
	return httpserver.TLSConfig{CertFile: c.TLS.CertFile, KeyFile: c.TLS.KeyFile,
		ClientCAFile: c.TLS.ClientCAFile}
}
