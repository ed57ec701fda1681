package emulator

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tidefill/tidefill/runner"
	"github.com/tidefill/tidefill/simulator/engine"
)

// Server is an emulated runner. Handler serves it; Run advances its engine.
type Server struct {
	config   Config
	log      *slog.Logger
	models   map[string][]byte // JSON string, by served name
	mux      *http.ServeMux
	metrics  *metrics
	ledger   *ledger
	injector *faultInjector
	tenants  *tenants
	loop     *engineLoop // nil for Instant
	instant  instantCounts
	started  time.Time
	serial   atomic.Uint64

	capabilitiesMu sync.Mutex
	capabilities   []byte
	capabilitiesAt time.Time
	busyBefore     time.Duration // of the engine, at capabilitiesAt
}

// New builds a runner. With the profile Instant it serves at once; otherwise inference requests are
// answered 503 until Run is called.
func New(c Config) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("emulator configuration: %w", err)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Interactive.Seed == 0 {
		c.Interactive.Seed = c.Seed
	}
	s := &Server{
		config: c, log: c.Logger.With("component", "emulator"), models: map[string][]byte{},
		mux: http.NewServeMux(), ledger: newLedger(c.Record),
		metrics: newMetrics(c),
		tenants: newTenants(c.TenantRates), started: time.Now(),
	}
	s.injector = newFaultInjector(c.Faults, c.Seed, s.started)
	for _, m := range c.Models {
		s.models[m] = mustJSON(m)
	}
	if c.Profile != Instant {
		e, err := c.engine()
		if err != nil {
			return nil, err
		}
		if s.loop, err = newEngineLoop(c, e, s.metrics, s.injector.stall); err != nil {
			return nil, err
		}
		s.applyPace(c.Faults)
	}
	s.metrics.registry.MustRegister(pageCollector{s.metrics.exporter.families(), s.page})
	s.routes()
	return s, nil
}

func (s *Server) routes() {
	for path, r := range map[string]route{
		"/v1/chat/completions": {read: readChat, reply: chatReply{}},
		"/v1/completions":      {read: readCompletion, reply: completionReply{}},
		"/v1/responses":        {read: readResponse, reply: responseReply{}},
		"/v1/embeddings":       {read: readEmbedding, reply: embeddingReply{}},
		"/v1/moderations":      {read: readModeration, reply: moderationReply{}},
		"/v1/rerank":           {read: readRerank, reply: rerankReply{}},
		"/v1/score":            {read: readScore, reply: scoreReply{}},
	} {
		s.mux.HandleFunc("POST "+path, func(w http.ResponseWriter, req *http.Request) {
			s.infer(w, req, r)
		})
	}
	s.mux.HandleFunc("GET /v1/models", s.listModels)
	s.mux.HandleFunc("GET /v1/models/{model...}", s.getModel)
	s.mux.HandleFunc("GET "+runner.CapabilitiesPath, s.getCapabilities)
	s.mux.HandleFunc("GET "+runner.HealthPath, s.getHealth)
	metrics := promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{})
	if s.config.Engine == TensorRTLLM {
		s.mux.Handle("GET /prometheus/metrics", metrics)
		s.mux.HandleFunc("GET /metrics", s.getIterationStats)
	} else {
		s.mux.Handle("GET /metrics", metrics)
	}
	s.mux.HandleFunc("GET /admin/faults", s.getFaults)
	s.mux.HandleFunc("POST /admin/faults", s.postFaults)
	s.mux.HandleFunc("GET /admin/timing", s.getTiming)
	s.mux.HandleFunc("GET /admin/requests", s.getRequests)
	s.mux.HandleFunc("DELETE /admin/requests", s.deleteRequests)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		f := badRequest("", "No route for %s %s.", r.Method, r.URL.Path)
		f.status, f.body.Code = http.StatusNotFound, "not_found"
		f.write(w)
	})
}

// Handler serves the runner's routes.
func (s *Server) Handler() http.Handler { return http.HandlerFunc(s.serve) }

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, "/admin/") && s.injector.down(time.Now()) {
		resetConnection(w)
	}
	s.mux.ServeHTTP(w, r)
}

// Run serves until ctx ends; then requests in flight are answered 503. It may be called once.
func (s *Server) Run(ctx context.Context) error {
	s.log.InfoContext(ctx, "runner started", "profile", s.config.Profile, "models", s.config.Models,
		"speedup", s.config.Speedup)
	defer s.log.InfoContext(ctx, "runner stopped")
	if s.loop == nil {
		<-ctx.Done()
		return nil
	}
	var load sync.WaitGroup
	if s.config.Interactive.RPS > 0 {
		load.Go(func() { s.loop.generateInteractive(ctx, s.config.Interactive) })
	}
	s.loop.run(ctx)
	load.Wait()
	return nil
}

// instantBlocks is the KV capacity reported without an engine: more than is ever filled.
const instantBlocks = 1 << 20

// instantCounts are an engine's counters, for the profile Instant.
type instantCounts struct {
	prompt, generated, finished atomic.Uint64
}

// Snapshot returns the state of the engine.
func (s *Server) Snapshot() engine.Snapshot {
	if s.loop != nil {
		snapshot, _ := s.loop.read()
		return snapshot
	}
	return engine.Snapshot{KVBlocks: instantBlocks, Counters: engine.Counters{
		PromptTokens: s.instant.prompt.Load(), GeneratedTokens: s.instant.generated.Load(),
		Finished: s.instant.finished.Load(),
	}}
}

// page returns what the metrics of the engine show.
func (s *Server) page() page {
	if s.loop != nil {
		return s.loop.page()
	}
	return livePage(s.Snapshot())
}

// serving reports whether inference requests are accepted.
func (s *Server) serving() bool {
	if s.loop == nil {
		return true
	}
	s.loop.mu.Lock()
	defer s.loop.mu.Unlock()
	return s.loop.serving
}

func (s *Server) getHealth(w http.ResponseWriter, _ *http.Request) {
	status := runner.HealthStatus{
		Status: runner.Healthy, Uptime: int64(time.Since(s.started).Seconds()),
		ModelsLoaded: len(s.served()), QueueDepth: s.Snapshot().Waiting,
	}
	code := http.StatusOK
	if !s.serving() || status.QueueDepth >= s.config.MaxQueueDepth {
		status.Status, code = runner.Unhealthy, http.StatusServiceUnavailable
	}
	writeJSON(w, code, status)
}

func (s *Server) getFaults(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, s.injector.current())
}

// postFaults replaces all faults: {} removes them.
func (s *Server) postFaults(w http.ResponseWriter, r *http.Request) {
	var f Faults
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
	d.DisallowUnknownFields()
	err := d.Decode(&f)
	if err == nil {
		err = f.Validate()
	}
	if err != nil {
		badRequest("", "faults: %v", err).write(w)
		return
	}
	s.SetFaults(f)
	s.log.InfoContext(r.Context(), "faults set", "faults", f)
	writeJSON(w, http.StatusOK, f)
}

// SetFaults replaces the present faults; f must be valid. Faults.Down starts now.
func (s *Server) SetFaults(f Faults) {
	s.injector.set(f, time.Now())
	s.applyPace(f)
}

func (s *Server) applyPace(f Faults) {
	if s.loop == nil {
		return
	}
	if f.Slow == 0 {
		f.Slow = 1
	}
	s.loop.setPace(f.Slow)
}

func (s *Server) getRequests(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusOK, s.ledger.read(r.URL.Query().Get("bodies") == "true"))
}

func (s *Server) deleteRequests(w http.ResponseWriter, _ *http.Request) {
	s.ledger.reset()
	w.WriteHeader(http.StatusNoContent)
}

// Requests returns what was received, like /admin/requests with bodies.
func (s *Server) Requests() Ledger { return s.ledger.read(true) }
