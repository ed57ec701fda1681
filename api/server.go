package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/store/buckets"
	"github.com/tidefill/tidefill/store/live"
	"github.com/tidefill/tidefill/tracing"
)

// Deps holds the dependencies of a Server. Store is required.
type Deps struct {
	Store

	// Nudge notifies dispatchers that a batch is new or changed, so that they read it without
	// delay. It must not block. May be nil.
	Nudge func(batchID string)
	// Models returns the models that the upstreams serve at present. Nil: none.
	Models func() []ModelInfo
	// UnservedModels returns a sentence for each of the models that no upstream serves, as far as
	// is known. Nil: nothing is known.
	UnservedModels func(ctx context.Context, models []string) (map[string]string, error)
	// Catalogs returns the templates and profiles that are in force. The error says why they are
	// not known yet. Nil: there are none.
	Catalogs func() (*registry.Catalogs, error)
	// Places opens the storages of profiles. Nil: files in them can't be read or removed.
	Places Places
	// Buckets finds the buckets that users may name. Nil: there are none.
	Buckets *buckets.Buckets
	// Silent reports whether a dispatcher has not been heard of for so long that what it posted of
	// the present is no longer so, although its lease lasts. Nil: none is.
	Silent func(node string) bool
	// NotLed returns a reason, as users see it, if no process works on batches of these models;
	// empty: one does, or that is not known. Nil: nothing is known.
	NotLed func(models []string) string
	// Windows counts the requests of tenants over all processes. Nil: those of this process.
	Windows live.Windows
	// Outlook predicts what would become of batches. Nil: nothing is predicted.
	Outlook Outlook
	// Older returns an error while bytes that no record refers to must stay, since the records may
	// be older. Nil: they never are.
	Older func(ctx context.Context) error
	// Inline serves interactive requests. Nil: their URLs are unknown.
	Inline Inline
	// Tracer exports the spans of batches that end when they are created. Nil: traces are off.
	Tracer *tracing.Tracer
	// Keys are the API keys until SetKeys. Nil or empty: requests need no key and belong to
	// DefaultTenant.
	Keys *Keyring

	// Version is the release that GET /version answers.
	Version string

	Logger *slog.Logger     // nil: nothing is logged
	Now    func() time.Time // nil: time.Now
	// Expiry returns the time by which files, uploads and batches expire. Nil: Now.
	Expiry     func() time.Time
	Registerer prometheus.Registerer // nil: metrics are not registered
}

// Server serves the API.
type Server struct {
	current     atomic.Pointer[Config]
	deps        Deps
	meta        Metadata
	blobs       Blobs
	keys        atomic.Pointer[Keyring]
	keyUses     keyUses
	log         *slog.Logger
	now         func() time.Time
	metrics     *metrics
	mux         *http.ServeMux
	routed      map[string]methods // by pattern
	description func() (description, error)
	gates       *gates
	shownCounts shownCounts
	predictions predictions
	previewing  sync.Mutex // held during a prediction that nothing but an answer depends on
	quotas      ledger     // by tenant
	parts       ledger     // by upload
	creating    sync.Map   // tenant and Idempotency-Key -> true, while the object is being created
	streams     streams
	watch       watch

	keysChange sync.Mutex // of SetKeys
}

// New returns a Server. Handler serves requests; Run removes what has expired and saves the uses of
// keys.
func New(config Config, deps Deps) (*Server, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("api config: %w", err)
	}
	if !deps.Store.complete() {
		return nil, errors.New("api: a field of Store is not set")
	}
	deps.Logger = cmp.Or(deps.Logger, slog.New(slog.DiscardHandler)).With("component", "api")
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.Expiry == nil {
		deps.Expiry = deps.Now
	}
	if deps.Nudge == nil {
		deps.Nudge = func(string) {}
	}
	if deps.Models == nil {
		deps.Models = func() []ModelInfo { return nil }
	}
	if deps.Buckets == nil {
		deps.Buckets = buckets.New(nil, nil)
	}
	if deps.Windows == nil {
		deps.Windows = new(live.Memory)
	}
	metrics, err := newMetrics(deps.Registerer)
	if err != nil {
		return nil, fmt.Errorf("register api metrics: %w", err)
	}
	s := &Server{
		deps:    deps,
		meta:    deps.Metadata,
		blobs:   deps.Blobs,
		log:     deps.Logger,
		now:     deps.Now,
		metrics: metrics,
		mux:     http.NewServeMux(),
		routed:  make(map[string]methods),
		streams: streams{closed: make(chan struct{})},
	}
	s.description = sync.OnceValues(func() (description, error) {
		return newDescription(deps.Version)
	})
	s.watch = watch{meta: s.meta, show: s.show, streams: make(map[string]int),
		round: make(chan struct{}), woken: make(chan struct{}, 1)}
	s.current.Store(&config)
	s.keys.Store(deps.Keys)
	s.gates = s.newGates()
	s.routes()
	return s, nil
}

func (s *Server) routes() {
	s.route("/v1/models", methods{"GET": s.listModels})
	s.route("/v1/models/{id...}", methods{"GET": s.getModel})
	s.route("/version", methods{"GET": s.version})
	s.route(descriptionURL, methods{"GET": s.describe})
	s.route("/v1/registry", methods{"GET": s.listRegistry})
	s.route("/v1/tenants", methods{"GET": s.listTenants})
	s.route("/v1/organization/usage/completions", methods{"GET": s.listUsage})
	s.route("/v1/organization/admin_api_keys", methods{"GET": s.listKeys})
	s.inlineRoutes()
	s.fileRoutes()
	s.uploadRoutes()
	s.batchRoutes()
	s.mux.Handle("/", s.serve(func(_ http.ResponseWriter, r *http.Request) error {
		return &httpError{
			Status: http.StatusNotFound, Type: invalidRequest, Code: "unknown_url",
			Message: fmt.Sprintf("Unknown request URL: %s %s.%s", r.Method, r.URL.Path,
				s.meant(r)),
		}
	}))
}

// meant returns what somebody who asked for an unknown URL probably has to do, as a sentence after
// a space.
func (s *Server) meant(r *http.Request) string {
	known := func(path string) bool {
		as := r.Clone(r.Context())
		as.URL.Path = path
		_, pattern := s.mux.Handler(as)
		return pattern != "/"
	}
	switch path := r.URL.Path; {
	case s.deps.Inline == nil && (slices.Contains(inlineURLs, path) ||
		slices.Contains(inlineURLs, "/v1"+path)):
		return " This server takes batches only. Send interactive requests to the model server, " +
			"or have its operator set inline.enabled."
	case path == "/console" || strings.HasPrefix(path, "/console/") ||
		strings.HasPrefix(path, "/admin/"):
		return " The console is at the daemon's address for operators, which its configuration " +
			"names as admin_listen; the page of users is at /, for browsers."
	case path == "/":
		return " This is the API of Tidefill; clients use it by the base URL that ends in /v1. " +
			"GET " + descriptionURL + " describes it."
	case known("/v1" + path):
		return " The base URL must end in /v1."
	case strings.HasPrefix(path, "/v1/v1/"):
		return " The base URL has /v1 twice."
	}
	return " GET " + descriptionURL + " lists the URLs."
}

// version answers GET /version, as model servers do.
func (s *Server) version(w http.ResponseWriter, _ *http.Request) error {
	return writeJSON(w, struct {
		Version string `json:"version"`
	}{s.deps.Version})
}

// config returns the configuration as of now.
func (s *Server) config() *Config { return s.current.Load() }

// SetConfig replaces the configuration, which must be valid. Requests in progress keep the limits
// that they have checked already. Tuning.SweepEvery, and the removal of orphans and its interval,
// stay as they were when Run began.
func (s *Server) SetConfig(config Config) {
	s.current.Store(&config)
	s.gates.configure(config)
}

// handler answers a request or returns an error, which serve sends.
type handler func(w http.ResponseWriter, r *http.Request) error

// methods holds the handlers of one path by method. The handler of GET also answers HEAD.
type methods map[string]handler

// route registers a path, an http.ServeMux pattern without a method.
func (s *Server) route(path string, m methods) {
	s.routed[path] = m
	if get, ok := m["GET"]; ok {
		m["HEAD"] = get
	}
	allowed := strings.Join(slices.Sorted(maps.Keys(m)), ", ")
	s.mux.Handle(path, s.serve(func(w http.ResponseWriter, r *http.Request) error {
		h, ok := m[r.Method]
		if !ok {
			w.Header().Set("Allow", allowed)
			return &httpError{
				Status: http.StatusMethodNotAllowed, Type: invalidRequest,
				Code: "method_not_allowed",
				Message: fmt.Sprintf("Not allowed to %s on %s; use %s.", r.Method, r.URL.Path,
					allowed),
			}
		}
		return h(w, r)
	}))
}

// Handler returns the handler of all of the API's requests.
func (s *Server) Handler() http.Handler { return s.middleware(s.mux) }

// nudge notifies dispatchers that a batch is new or changed.
func (s *Server) nudge(batchID string) { s.deps.Nudge(batchID) }

// cleanupLimit is the longest time that an answer waits for the removal of what its request has
// left. What remains is an orphan, which is removed later.
const cleanupLimit = 10 * time.Second

// cleanupContext returns a context for cleaning up after a request, which may have ended already.
func cleanupContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanupLimit)
}
