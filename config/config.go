package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/internal/httpserver"
	"github.com/tidefill/tidefill/internal/wallclock"
	"github.com/tidefill/tidefill/scheduler"
	"github.com/tidefill/tidefill/telemetry"
)

// Config is everything that the daemon can be told.
type Config struct {
	// Listen is the address of the API, host:port. Port 0 takes a free one. Any address but a
	// loopback one needs keys.
	Listen string `yaml:"listen"`
	// AdminListen is the address of /healthz, /readyz, /metrics and /debug/pprof, which ask for no
	// key. Empty: not served.
	AdminListen string `yaml:"admin_listen"`
	// Data is the directory that holds files, results and the database. It is made if need be.
	Data string `yaml:"data"`
	// Node names this daemon among those that share a store, and must stay the same over restarts.
	// Empty: the host's name.
	Node string `yaml:"node"`
	// Record is a file that what a simulation needs to know of this daemon's days is written to:
	// how much work came, how the runners took it, what readings showed; never prompts, answers,
	// custom_ids or names. Empty: nothing is recorded.
	Record string `yaml:"record"`

	Storage Storage `yaml:"storage"`
	// Clock bounds the trust in the wall clock, by which files, uploads and batches expire.
	Clock wallclock.Config `yaml:"clock"`

	Log  Log  `yaml:"log"`
	Auth Auth `yaml:"auth"`
	// HTTP bounds the connections of the API and the time that clients may take. Who may hold how
	// many of the API's requests is in the section api.
	HTTP httpserver.Config `yaml:"http"`
	// TLS secures the API and the admin address.
	TLS httpserver.TLSConfig `yaml:"tls"`
	// Upstreams are the model servers that lines are sent to.
	Upstreams []dispatch.Upstream `yaml:"upstreams"`
	// API bounds what users may send and how long it is kept. Sizes are bytes.
	API api.Config `yaml:"api"`
	// Scheduler orders the batches.
	Scheduler scheduler.Config `yaml:"scheduler"`
	// FlowControl says how much batch work the runners may carry.
	FlowControl flowcontrol.Config `yaml:"flowcontrol"`
	// Readings are looks at the runners' metrics, and at those of what stands before them, for
	// policies of flow control that heed them (all but fixed, aimd and gradient).
	Readings telemetry.Config `yaml:"readings"`
	// Dispatch sends lines, tries them again, and keeps what comes back.
	Dispatch dispatch.Config `yaml:"dispatch"`
	Shutdown Shutdown        `yaml:"shutdown"`
}

// Log is how the daemon tells its story, on standard error.
type Log struct {
	// Level is the least important kind of message that is written: debug, info, warn or error.
	Level slog.Level `yaml:"level"`
	// Format is the form of messages: text for people, json for machines.
	Format string `yaml:"format"`
}

// Auth is who may use the API. Keys also come from the environment variable TIDEFILL_API_KEYS, a
// comma list of key or tenant=key.
type Auth struct {
	api.AuthConfig `yaml:",inline"`
	// InsecureNoAuth serves anyone who reaches a non-loopback listen address when there are no keys
	// at all.
	InsecureNoAuth bool `yaml:"insecure_no_auth"`
}

// Shutdown is how the daemon goes once it is told to.
type Shutdown struct {
	// Delay is the time between reporting not ready and refusing connections, for load balancers to
	// look elsewhere.
	Delay time.Duration `yaml:"delay"`
	// Drain is the time for requests under way, ours upstream and users' to the API, to finish.
	// What isn't done by then is cut off; lines go back to the queue, no attempt charged.
	Drain time.Duration `yaml:"drain"`
}

// Default is a daemon on the loopback interface that keeps its data in the working directory.
func Default() Config {
	return Config{
		Listen:      "127.0.0.1:8080",
		AdminListen: "127.0.0.1:8081",
		Data:        "tidefill-data",
		Storage:     DefaultStorage(),
		Clock:       wallclock.DefaultConfig(),
		Log:         Log{Level: slog.LevelInfo, Format: "text"},
		HTTP:        httpserver.DefaultConfig(),
		API:         api.DefaultConfig(),
		Scheduler:   scheduler.DefaultConfig(),
		FlowControl: flowcontrol.DefaultConfig(),
		Readings:    telemetry.DefaultConfig(),
		Dispatch:    dispatch.DefaultConfig(),
		Shutdown:    Shutdown{Drain: 30 * time.Second},
	}
}

// Validate reports every fault, each beginning with the path of its key.
func (c Config) Validate() error {
	var faults []error
	refuse := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf(format, args...))
	}

	if err := checkAddress(c.Listen); err != nil {
		refuse("listen: %w", err)
	}
	if c.AdminListen != "" {
		if err := checkAddress(c.AdminListen); err != nil {
			refuse("admin_listen: %w", err)
		} else if c.AdminListen == c.Listen && !hasPortZero(c.Listen) {
			refuse("admin_listen is %s, the address of the API; give it one of its own",
				c.AdminListen)
		}
	}
	if c.Data == "" {
		refuse("data is empty; name the directory that keeps files and results")
	}
	if c.Log.Format != "text" && c.Log.Format != "json" {
		refuse("log.format is %q, not text or json", c.Log.Format)
	}
	if c.Shutdown.Delay < 0 {
		refuse("shutdown.delay is %s, less than nothing", c.Shutdown.Delay)
	}
	if c.Shutdown.Drain < 0 {
		refuse("shutdown.drain is %s, less than nothing", c.Shutdown.Drain)
	}
	for i, u := range c.Upstreams {
		if parsed, err := url.Parse(u.Metrics); u.Metrics != "" && u.Metrics != "none" &&
			(err != nil || parsed.Host == "") {
			refuse("upstreams[%d].metrics is %q, no URL; write http://host:port/metrics, or none",
				i, u.Metrics)
		}
		if err := u.CheckHeaders(); err != nil {
			refuse("upstreams[%d].%v", i, err)
		}
		if parsed, err := url.Parse(u.URL); err != nil || parsed.Host == "" ||
			parsed.Scheme != "http" && parsed.Scheme != "https" {
			refuse("upstreams[%d].url is %q, no URL; write http://host:port", i, u.URL)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.FlowControl.Pools)) {
		if listed, whole := c.servedModels(); whole && !slices.Contains(listed, name) {
			refuse("flowcontrol.pools.%s: no upstream serves a model of that name; there are %s",
				name, strings.Join(listed, ", "))
		}
	}
	return errors.Join(append(faults,
		section("storage", c.Storage.Validate()),
		section("clock", c.Clock.Validate()),
		section("http", c.HTTP.Validate()),
		section("tls", c.TLS.Validate()),
		section("api", c.API.Validate()),
		section("scheduler", c.Scheduler.Validate()),
		section("flowcontrol", c.FlowControl.Validate()),
		section("readings", c.Readings.Validate()),
		section("dispatch", c.Dispatch.Validate()),
	)...)
}

// servedModels are the models that upstreams are said to serve; whole: none of them is asked for
// more.
func (c Config) servedModels() (listed []string, whole bool) {
	for _, u := range c.Upstreams {
		if len(u.Models) == 0 {
			return nil, false
		}
		listed = append(listed, u.Models...)
	}
	slices.Sort(listed)
	return slices.Compact(listed), len(listed) > 0
}

// section prefixes the faults of a section with its path.
func section(path string, err error) error {
	var faults []error
	for _, fault := range Faults(err) {
		faults = append(faults, fmt.Errorf("%s.%w", path, fault))
	}
	return errors.Join(faults...)
}

// NodeName is the configured node, or the host's name.
func (c Config) NodeName() (string, error) {
	host, err := os.Hostname()
	if c.Node == "" && err != nil {
		return "", fmt.Errorf("name this node after its host: %w; set node", err)
	}
	return cmp.Or(c.Node, host), nil
}

func checkAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is no address; write host:port, such as 127.0.0.1:8080 or :8080",
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
