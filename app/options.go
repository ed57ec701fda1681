package app

import (
	"log/slog"
	"net"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/config"
)

// Options are what a program gives to its daemon besides the configuration. The zero value works.
type Options struct {
	// Logger takes the log. Nil: nothing is logged.
	Logger *slog.Logger
	// Registry takes the daemon's metrics, and its contents are served at /metrics. Nil: a new
	// registry with the metrics of the Go runtime and of the process.
	Registry Registry
	// Version is reported in the log and in the metric tidefill_build_info. Empty: "unknown".
	Version string
	// Keys are API keys that are valid in addition to those of auth.keys_file. Nil: none.
	Keys *api.Keyring
	// Listener serves the API instead of a new listener on Config.Listen. The App closes it, also
	// if New fails. Without API keys it is served only if its address is a loopback one.
	Listener net.Listener
	// AdminListener serves administration instead of a new listener on Config.AdminListen. The App
	// closes it, also if New fails.
	AdminListener net.Listener
	// ScalerListener serves KEDA instead of a new listener on Config.Scaler.Listen. The App closes
	// it, also if New fails.
	ScalerListener net.Listener
	// Stop ends New while it waits for a store that is away, and the wait for templates and
	// profiles in Kubernetes. Nil: it waits on.
	Stop <-chan struct{}
	// Ready is called once, from a goroutine of Run, when /readyz first reports ready. Nil: nobody
	// is notified.
	Ready func()
	// Reload makes the App read its configuration and the files of keys and certificates again with
	// every value that it sends, such as SIGHUP from signal.Notify. They are also read again when
	// they change. Nil: only then.
	Reload <-chan os.Signal
	// Load returns the configuration as it is now, valid as config.Load returns it. It is called
	// when ConfigFile has changed, and for Reload. Nil: the configuration never changes.
	Load func() (config.Config, error)
	// Locate adds the place in the file to the faults of the configuration that Load returned last.
	// Nil: they are logged with the paths of their keys only.
	Locate func(error) error
	// ConfigFile is the file whose changes make the App call Load. Empty: there is none.
	ConfigFile string
	// LogLevel is the level of Logger, which the App sets when log.level changes. Nil: such a
	// change has no effect.
	LogLevel *slog.LevelVar
}

// Registry collects metrics. *prometheus.Registry is one.
type Registry interface {
	prometheus.Registerer
	prometheus.Gatherer
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Registry == nil {
		o.Registry = newRegistry()
	}
	if o.LogLevel == nil {
		o.LogLevel = new(slog.LevelVar)
	}
	if o.Version == "" {
		o.Version = "unknown"
	}
	return o
}
