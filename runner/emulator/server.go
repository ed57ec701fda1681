package emulator

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tidefill/tidefill/runner"
	"github.com/tidefill/tidefill/simulator/engine"
)

// Server is an emulated runner. Handler serves it; Run moves its engine on.
type Server struct {
	config  Config
	log     *slog.Logger
	models  map[string][]byte // served name to its JSON string
	mux     *http.ServeMux
	metrics *metrics
	ledger  *ledger
	ill     *misfortune
	tenants *tenants
	plant   *plant // nil for Instant
	instant instantCounts
	started time.Time
	serial  atomic.Uint64

	capabilitiesMu sync.Mutex
	capabilities   []byte
	capabilitiesAt time.Time
	busyBefore     time.Duration // of the engine, at capabilitiesAt
}

// New builds a runner. With the profile Instant it serves at once; otherwise
// inference answers 503 until Run is called.
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
		mux: http.NewServeMux(), metrics: newMetrics(c.Models[0]), ledger: newLedger(c.Record),
		tenants: newTenants(c.TenantRates), started: time.Now(),
	}
	s.ill = newMisfortune(c.Faults, c.Seed, s.started)
	for _, m := range c.Models {
		s.models[m] = mustJSON(m)
	}
	if c.Profile != Instant {
		e, err := c.engine()
		if err != nil {
			return nil, err
		}
		if s.plant, err = newPlant(c, e, s.metrics, s.ill.stall); err != nil {
			return nil, err
		}
		s.applyPace(c.Faults)
	}
	s.metrics.registry.MustRegister(newEngineCollector(c.Models[0], c.PrefixCaching, s.Snapshot))
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
	s.mux.Handle("GET /metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}))
	s.mux.HandleFunc("GET /admin/faults", s.getFaults)
	s.mux.HandleFunc("POST /admin/faults", s.postFaults)
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
	if !strings.HasPrefix(r.URL.Path, "/admin/") && s.ill.down(time.Now()) {
		hangUp(w)
	}
	s.mux.ServeHTTP(w, r)
}

// Run serves until ctx ends; then requests under way are answered 503. It may be
// called once.
func (s *Server) Run(ctx context.Context) error {
	s.log.InfoContext(ctx, "runner started", "profile", s.config.Profile, "models", s.config.Models,
		"speedup", s.config.Speedup)
	defer s.log.InfoContext(ctx, "runner stopped")
	if s.plant == nil {
		<-ctx.Done()
		return nil
	}
	var load sync.WaitGroup
	if s.config.Interactive.RPS > 0 {
		load.Go(func() { s.plant.interact(ctx, s.config.Interactive) })
	}
	s.plant.run(ctx)
	load.Wait()
	return nil
}

// instantBlocks is the KV capacity claimed where there is no engine: more than
// anyone fills.
const instantBlocks = 1 << 20

// instantCounts is what an engine counts, when there is none.
type instantCounts struct {
	prompt, generated, finished atomic.Uint64
}

// Snapshot is the state of the engine.
func (s *Server) Snapshot() engine.Snapshot {
	if s.plant != nil {
		snapshot, _ := s.plant.read()
		return snapshot
	}
	return engine.Snapshot{KVBlocks: instantBlocks, Counters: engine.Counters{
		PromptTokens: s.instant.prompt.Load(), GeneratedTokens: s.instant.generated.Load(),
		Finished: s.instant.finished.Load(),
	}}
}

// serving says whether inference requests are taken.
func (s *Server) serving() bool {
	if s.plant == nil {
		return true
	}
	s.plant.mu.Lock()
	defer s.plant.mu.Unlock()
	return s.plant.serving
}

type model struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	MaxModelLen int    `json:"max_model_len"`
}

func (s *Server) model(id string) model {
	return model{ID: id, Object: "model", Created: s.started.Unix(),
		OwnedBy: "tidefill", MaxModelLen: s.contextLength()}
}

// contextLength is in tokens.
func (s *Server) contextLength() int {
	switch {
	case s.plant != nil:
		return s.plant.engine.MaxModelLen()
	case s.config.MaxModelLen > 0:
		return s.config.MaxModelLen
	}
	return instantBlocks * engine.BlockSize
}

// served lists the models that are not refused.
func (s *Server) served() []string {
	return slices.DeleteFunc(slices.Clone(s.config.Models), s.ill.refuses)
}

func (s *Server) listModels(w http.ResponseWriter, _ *http.Request) {
	list := struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{Object: "list", Data: []model{}}
	for _, id := range s.served() {
		list.Data = append(list.Data, s.model(id))
	}
	writeJSON(w, http.StatusOK, list)
}

func (s *Server) getModel(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("model")
	if !slices.Contains(s.served(), id) {
		notFound(id).write(w)
		return
	}
	writeJSON(w, http.StatusOK, s.model(id))
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

func (s *Server) getCapabilities(w http.ResponseWriter, _ *http.Request) {
	if !s.serving() {
		notServing().write(w)
		return
	}
	w.Header().Set("Cache-Control", fmt.Sprintf("max-age=%d", runner.CapabilitiesTTL/time.Second))
	write(w, http.StatusOK, s.readCapabilities(time.Now()))
}

// readCapabilities is as old as runner.CapabilitiesTTL at most, and no younger
// than it has to be: like a real runner's, it does not follow every change.
func (s *Server) readCapabilities(now time.Time) []byte {
	s.capabilitiesMu.Lock()
	defer s.capabilitiesMu.Unlock()
	age := now.Sub(s.capabilitiesAt)
	if s.capabilities != nil && age < runner.CapabilitiesTTL {
		return s.capabilities
	}
	c := runner.Capabilities{
		RunnerType: "tidefill-emulator", RunnerID: s.config.RunnerID,
		Models: runner.Models{Loaded: []runner.LoadedModel{}, Loading: []runner.LoadingModel{},
			Available: s.config.Models},
		Resources: runner.Resources{GPUIDs: []int{}},
		Queue:     runner.Queue{MaxDepth: s.config.MaxQueueDepth},
		Capabilities: runner.Features{
			Streaming: true, PrefixCaching: s.config.PrefixCaching && s.plant != nil,
			MultiTenant: true,
		},
		Health: runner.Healthy,
	}
	for _, id := range s.served() {
		c.Models.Loaded = append(c.Models.Loaded,
			runner.LoadedModel{ID: id, ContextLength: s.contextLength(),
				LoadedAt: s.started.Unix()})
	}
	if s.plant != nil {
		snapshot, waits := s.plant.read()
		c.Queue.Depth = snapshot.Waiting
		c.Queue.AvgWaitMs, c.Queue.P95WaitMs = waits.meanAndP95()
		c.Resources.KVCacheUtilization = snapshot.KVUtilization()
		if s.capabilities != nil {
			c.Resources.GPUUtilization = min(1,
				float64(s.plant.clock.real(snapshot.Busy-s.busyBefore))/float64(age))
		}
		s.busyBefore = snapshot.Busy
	}
	s.capabilities = mustJSON(c)
	s.capabilitiesAt = now
	return s.capabilities
}

func (s *Server) getFaults(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, s.ill.inForce())
}

// postFaults replaces all faults: {} heals.
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

// SetFaults replaces the faults in force; f must be valid. Faults.Down counts
// from now.
func (s *Server) SetFaults(f Faults) {
	s.ill.set(f, time.Now())
	s.applyPace(f)
}

func (s *Server) applyPace(f Faults) {
	if s.plant == nil {
		return
	}
	if f.Slow == 0 {
		f.Slow = 1
	}
	s.plant.setPace(f.Slow)
}

func (s *Server) getRequests(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusOK, s.ledger.read(r.URL.Query().Get("bodies") == "true"))
}

func (s *Server) deleteRequests(w http.ResponseWriter, _ *http.Request) {
	s.ledger.forget()
	w.WriteHeader(http.StatusNoContent)
}

// Requests tells what was received, as /admin/requests does with its bodies.
func (s *Server) Requests() Ledger { return s.ledger.read(true) }
