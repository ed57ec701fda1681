package console

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/dispatch/decision"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/telemetry"
)

// Deps are what a Console shows. All fields are required.
type Deps struct {
	Version, Node string
	Decisions     *decision.History
	// Flow returns the configuration of the pool of this name that serves these models.
	Flow func(name string, models []string) flowcontrol.Config
	// Degraded returns the sources of readings that give none.
	Degraded func() []telemetry.Degradation
	// Failures returns what runners have failed in the last minutes.
	Failures func() []dispatch.RunnerFailures
	// Requests returns the pools with the interactive requests that pass through.
	Requests func() []plan.PoolStatus
	// Waiting returns why the daemon is not ready; none: it is.
	Waiting func() []string
	// Problems lists what does not work and leaves the daemon ready, besides sources of readings.
	Problems func() []string
	// StandsBy reports whether another process decides for all pools.
	StandsBy func() bool
	// Peers returns what other processes have published of their pools.
	Peers func(context.Context) []Peer
	// Batches returns the ids of up to limit batches that have not ended, the number of all of
	// these, and the batches that ended last.
	Batches func(limit int) (living []string, all int, ended []string)
	// Search returns the ids of batches, and where to continue; empty: there are no more.
	Search    func(ctx context.Context, q api.BatchSearch) (ids []string, next string, err error)
	Summaries func(ctx context.Context, ids []string) ([]api.BatchSummary, error)
	// Details returns a batch. The error is store.ErrNotFound if it does not exist.
	Details func(ctx context.Context, id string) (api.BatchDetails, error)
	// EndedLines returns lines of a batch that have ended after a position.
	EndedLines func(ctx context.Context, id, after string, limit int) ([]api.EndedLine, string,
		error)
	// API serves the API, which checks the key of each request. Nil: this process serves none.
	API http.Handler
	// NeedsKey reports whether the API asks for keys, and Open whether other machines may use it
	// without one.
	NeedsKey, Open func() bool
	// History returns the history by hour of a pool, or of all if it is empty.
	History func(ctx context.Context, pool string, since time.Time) ([]store.PoolHour, error)
	// Usage returns sums of what was used.
	Usage func(ctx context.Context, q store.UsageQuery) ([]store.Used, error)
	// Forget drops what was learned of a pool. The error is store.ErrNotFound if nothing is known
	// of it, and has a method Leader if another process leads it.
	Forget func(ctx context.Context, pool string) error
	// Scaling returns what was decided last about replicas. The error says why nothing is.
	Scaling func() (*autoscale.Snapshot, error)
	// Registry returns the templates, profiles and use cases in force. The error says why they are
	// not known yet.
	Registry func() (*registry.Catalogs, error)
	// RegistrySources returns where they are read from.
	RegistrySources func() []RegistrySource
	// Pools returns the pools in force.
	Pools  func() *registry.Snapshot
	Now    func() time.Time
	Logger *slog.Logger
}

// Console serves the JSON and the page.
type Console struct{ deps Deps }

// New returns a Console.
func New(deps Deps) *Console { return &Console{deps} }

// Register adds the routes to a mux.
func (c *Console) Register(mux *http.ServeMux) {
	mux.Handle("GET /admin/pools", c.serve(c.pools))
	mux.Handle("GET /admin/pools/{pool}/decisions", c.serve(c.decisions))
	mux.Handle("DELETE /admin/pools/{pool}/learned", c.serve(c.forget))
	mux.Handle("GET /admin/history", c.serve(c.history))
	mux.Handle("GET /admin/usage", c.serve(c.usage))
	mux.Handle("GET /admin/batches", c.serve(c.batches))
	mux.Handle("GET /admin/batches/{id}", c.serve(c.batch))
	mux.Handle("GET /admin/batches/{id}/lines", c.serve(c.endedLines))
	mux.Handle("GET /admin/scaling", c.serve(c.scaling))
	mux.Handle("GET /admin/registry", c.serve(c.registry))
	mux.Handle("/admin/", c.serve(func(_ http.ResponseWriter, r *http.Request) error {
		return unknownURL(r)
	}))
	registerPage(mux)
	c.registerAPI(mux)
}
