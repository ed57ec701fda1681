package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/api/webhook"
	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/autoscale/keda"
	"github.com/tidefill/tidefill/autoscale/kube"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/flowcontrol"
	_ "github.com/tidefill/tidefill/flowcontrol/builtin" // the policies that can be configured
	"github.com/tidefill/tidefill/inline"
	"github.com/tidefill/tidefill/internal/httpserver"
	"github.com/tidefill/tidefill/internal/wallclock"
	registrykube "github.com/tidefill/tidefill/registry/kube"
	"github.com/tidefill/tidefill/scheduler"
	"github.com/tidefill/tidefill/store/buckets"
	"github.com/tidefill/tidefill/store/redis"
	"github.com/tidefill/tidefill/telemetry"
	"github.com/tidefill/tidefill/tracing"
)

// Config is the configuration of the daemon.
type Config struct {
	// Listen is the address of the API, host:port. Port 0 takes a free port. An address other than
	// a loopback address requires keys; see auth.
	Listen string `yaml:"listen"`
	// AdminListen is the address of /console, /healthz, /readyz, /metrics, /admin/config and
	// /debug/pprof, which require no key. Empty: they are not served.
	AdminListen string `yaml:"admin_listen"`
	// Data is the directory of files, results and the database. It is created if it does not exist.
	Data string `yaml:"data"`
	// Node identifies this daemon among those that share a store. It must stay the same over
	// restarts. Empty: the host's name.
	Node string `yaml:"node"`
	// Roles lists what this process does, of api, dispatch and scale. Default: all.
	Roles []Role `yaml:"roles"`
	// Record names a file in which the daemon records what a simulation of its traffic needs: how
	// much work arrived, how the runners responded, and what their metrics showed. It never
	// contains prompts, answers, custom_ids or names. Empty: nothing is recorded.
	Record string `yaml:"record"`

	Store Store `yaml:"store"`
	// Clock limits how far the wall clock is trusted. Files, uploads and batches expire by it. It
	// is no key: tests set it.
	Clock wallclock.Config `yaml:"-"`

	Log  Log  `yaml:"log"`
	Auth Auth `yaml:"auth"`
	// HTTP limits the connections of the API and the time that clients may take. The section api
	// limits how many requests are handled at once.
	HTTP httpserver.Config `yaml:"http"`
	// TLS encrypts the API and the admin address. A client certificate is required in addition to a
	// key; /healthz and /readyz require none.
	TLS httpserver.TLSConfig `yaml:"tls"`
	// Upstreams lists the model servers that lines are sent to.
	Upstreams []dispatch.Upstream `yaml:"upstreams"`
	// Pools lists the groups of runners whose number of replicas is decided by deadlines; see
	// autoscale. An upstream belongs to the pool that it names. Empty: nothing is scaled.
	Pools []PoolConfig `yaml:"pools"`
	// Async sets the Redis of the queues of pools with send: async. Without a URL it is that of
	// store.cluster.live.
	Async redis.Config `yaml:"async"`
	// API limits what users may send and sets how long files and batches are kept. Sizes are in
	// bytes.
	API api.Config `yaml:"api"`
	// Inline sets whether interactive requests pass through the daemon, and in which order they
	// reach the runners.
	Inline inline.Config `yaml:"inline"`
	// Scheduler sets how jobs are ordered.
	Scheduler scheduler.Config `yaml:"scheduler"`
	// FlowControl sets how much batch work the runners may carry.
	FlowControl flowcontrol.Config `yaml:"flowcontrol"`
	// Telemetry sets how runners are read: what they say of themselves under every policy of flow
	// control, their metrics and those of a gateway in front of them for the policies that use them
	// (all but fixed, aimd, none and unlimited).
	Telemetry telemetry.Config `yaml:"telemetry"`
	// Dispatch sets how lines are sent and retried.
	Dispatch dispatch.Config `yaml:"dispatch"`
	// Autoscale decides how many replicas the pools have.
	Autoscale autoscale.Config `yaml:"autoscale"`
	// Scaler is the address at which KEDA asks for the replicas of the pools.
	Scaler keda.Config `yaml:"scaler"`
	// Kubernetes sets how the cluster is reached in which runners of pools are found, and templates
	// and profiles are read.
	Kubernetes kube.Config `yaml:"kubernetes"`
	// Webhooks lists the URLs that are notified when batches end, and when it becomes known whether
	// they will meet their deadlines. Empty: nobody is.
	Webhooks []webhook.Endpoint `yaml:"webhooks"`
	// Buckets lists the buckets that users may name as inputs of batches and for their results.
	// Empty: none.
	Buckets []buckets.Entry `yaml:"buckets"`
	// Registry sets where the templates and profiles are that batches name, and the use cases.
	Registry RegistryConfig `yaml:"registry"`
	// Tracing exports what happens to batches as OpenTelemetry traces. The standard variables of
	// OpenTelemetry count too; those that may hold secrets are set there alone.
	Tracing  tracing.Config `yaml:"tracing"`
	Shutdown Shutdown       `yaml:"shutdown"`
}

// RegistryConfig sets where templates, profiles and use cases are read from. Of several with one
// name, that of the directory counts.
type RegistryConfig struct {
	// Dir is a directory of *.yaml files with templates, profiles and use cases. A change is in
	// force within two seconds. Empty: none is read.
	Dir string `yaml:"dir"`
	// Kubernetes names ConfigMaps with templates, profiles and use cases. A change is in force
	// within two seconds.
	Kubernetes registrykube.Config `yaml:"kubernetes"`
	// SecretsDir is a directory of Secrets that profiles and buckets name in
	// credentials_secret_ref: each is a directory of its name with a file for each key. Files are
	// read at use. Empty: profiles and buckets name absolute paths.
	SecretsDir string `yaml:"secrets_dir"`
}

// Log sets what the daemon logs on standard error.
type Log struct {
	// Level is the lowest level of messages that are written: debug, info, warn or error.
	Level slog.Level `yaml:"level"`
	// Format is the format of messages: text or json.
	Format string `yaml:"format"`
}

// Auth sets who may use the API. The environment variable TIDEFILL_API_KEYS adds keys, a comma list
// of key or tenant=key.
type Auth struct {
	api.AuthConfig `yaml:",inline"`
	// InsecureNoAuth permits an address other than a loopback address without any key: everyone who
	// reaches the address may do everything.
	InsecureNoAuth bool `yaml:"insecure_no_auth"`
}

// Shutdown sets how long the daemon takes to stop.
type Shutdown struct {
	// Delay sets the time between reporting not ready and refusing connections. During it, load
	// balancers can direct traffic to other daemons.
	Delay time.Duration `yaml:"delay"`
	// Drain limits the time in which requests in progress, to runners and from users, may finish.
	// Then they are aborted; their lines are sent again later, and the aborted attempt does not
	// count.
	Drain time.Duration `yaml:"drain"`
}

// Default returns the configuration of a daemon on the loopback interface with its data in the
// working directory.
func Default() Config {
	return Config{
		Listen:      "127.0.0.1:8080",
		AdminListen: "127.0.0.1:8081",
		Data:        "tidefill-data",
		Roles:       slices.Clone(AllRoles),
		Store:       defaultStore(),
		Clock:       wallclock.DefaultConfig(),
		Log:         Log{Level: slog.LevelInfo, Format: "text"},
		HTTP:        httpserver.DefaultConfig(),
		API:         api.DefaultConfig(),
		Async:       redis.DefaultConfig(),
		Inline:      inline.DefaultConfig(),
		Scheduler:   scheduler.DefaultConfig(),
		FlowControl: flowcontrol.DefaultConfig(),
		Telemetry:   telemetry.DefaultConfig(),
		Dispatch:    dispatch.DefaultConfig(),
		Autoscale:   autoscale.DefaultConfig(),
		Scaler:      keda.DefaultConfig(),
		Kubernetes:  kube.DefaultConfig(),
		Registry:    RegistryConfig{Kubernetes: registrykube.DefaultConfig()},
		Tracing:     tracing.DefaultConfig(),
		Shutdown:    Shutdown{Drain: 30 * time.Second},
	}
}

// Validate reports every fault with the path of its key.
func (c Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf(format, args...))
	}

	if err := checkAddress(c.Listen); err != nil {
		fault("listen: %w", err)
	}
	if c.AdminListen != "" {
		if err := checkAddress(c.AdminListen); err != nil {
			fault("admin_listen: %w", err)
		} else if c.AdminListen == c.Listen && !hasPortZero(c.Listen) {
			fault("admin_listen is %s, the address of the API; give it one of its own",
				c.AdminListen)
		}
	}
	if c.Data == "" {
		fault("data is empty; set it to the directory for files and results")
	}
	if c.Log.Format != "text" && c.Log.Format != "json" {
		fault("log.format is %q, not text or json", c.Log.Format)
	}
	if c.Shutdown.Delay < 0 {
		fault("shutdown.delay is %s; set it to 0 or more", c.Shutdown.Delay)
	}
	if c.Shutdown.Drain < 0 {
		fault("shutdown.drain is %s; set it to 0 or more", c.Shutdown.Drain)
	}
	faults = append(faults, c.validateEachUpstream())
	for _, name := range slices.Sorted(maps.Keys(c.FlowControl.Pools)) {
		if listed, complete := c.servedModels(); complete && !slices.Contains(listed, name) &&
			!c.hasPool(name) {
			fault("flowcontrol.pools.%s: there is no pool of that name, and no upstream serves a "+
				"model of it; they serve %s", name, strings.Join(listed, ", "))
		}
	}
	return errors.Join(append(faults,
		validateRoles(c.Roles),
		section("store", c.Store.Validate()),
		section("async", c.Async.Validate()),
		section("http", c.HTTP.Validate()),
		section("tls", c.TLS.Validate()),
		section("api", c.API.Validate()),
		section("inline", c.Inline.Validate()),
		section("scheduler", c.Scheduler.Validate()),
		section("flowcontrol", c.FlowControl.Validate()),
		section("telemetry", c.Telemetry.Validate()),
		section("dispatch", c.Dispatch.Validate()),
		section("autoscale", c.Autoscale.Validate()),
		section("scaler", c.Scaler.Validate()),
		section("kubernetes", c.Kubernetes.Validate()),
		section("registry.kubernetes", c.Registry.Kubernetes.Validate()),
		section("tracing", c.Tracing.Validate()),
		c.validateUpstreams(),
		c.validatePools(),
		c.validateWebhooks(),
		c.validateBuckets(),
	)...)
}

// servedModels returns the models that the upstreams are configured to serve. complete is false if
// the models of an upstream are not configured; the daemon requests them from the upstream.
func (c Config) servedModels() (listed []string, complete bool) {
	for _, u := range c.Upstreams {
		if len(u.Models) == 0 {
			return nil, false
		}
		listed = append(listed, u.Models...)
	}
	slices.Sort(listed)
	return slices.Compact(listed), len(listed) > 0
}

// section prepends the path of a section to each of its faults.
func section(path string, err error) error {
	var faults []error
	for _, fault := range Faults(err) {
		faults = append(faults, fmt.Errorf("%s.%w", path, fault))
	}
	return errors.Join(faults...)
}

// NodeName returns Node, or the host's name if Node is empty.
func (c Config) NodeName() (string, error) {
	host, err := os.Hostname()
	if c.Node == "" && err != nil {
		return "", fmt.Errorf("read the host's name for this node: %w; set node", err)
	}
	return cmp.Or(c.Node, host), nil
}

func checkAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not an address; write host:port, such as 127.0.0.1:8080 or :8080",
			address)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return fmt.Errorf("%q has no port between 0 and 65535", address)
	}
	return nil
}

func hasPortZero(address string) bool {
	_, port, _ := net.SplitHostPort(address)
	return port == "0"
}
