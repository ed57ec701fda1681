package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/store"
)

// Deps holds what a Notifier works with. Store, Progress and Node are required.
type Deps struct {
	Store    Store
	Progress ProgressBoard
	// Node is the name of this process among those that share the store.
	Node string
	// Getenv returns an environment variable, for the secrets. Nil: os.Getenv.
	Getenv     func(name string) string
	Logger     *slog.Logger          // nil: nothing is logged
	Registerer prometheus.Registerer // nil: metrics are not registered
	// Pace sets the intervals. Zero: DefaultPace.
	Pace Pace
}

// Pace sets the intervals at which a Notifier looks and tries.
type Pace struct {
	Look     time.Duration // between two looks for changes and due notices
	Verdicts time.Duration // between two readings of all forecasts
	Lease    time.Duration // that another process waits for the leader of an endpoint
	// FirstRetry is the time after the first attempt that fails. It doubles with each up to
	// LastRetry.
	FirstRetry, LastRetry time.Duration
}

// DefaultPace is the pace of daemons.
var DefaultPace = Pace{Look: time.Second, Verdicts: 5 * time.Second, Lease: 15 * time.Second,
	FirstRetry: 5 * time.Second, LastRetry: time.Hour}

// Notifier notifies endpoints. Run it.
type Notifier struct {
	deps      Deps
	log       *slog.Logger
	metrics   *metrics
	endpoints []*endpoint
}

// New returns a Notifier of the endpoints. It reads their secrets.
func New(endpoints []Endpoint, deps Deps) (*Notifier, error) {
	if err := Validate(endpoints); err != nil {
		return nil, fmt.Errorf("webhooks: %w", err)
	}
	if deps.Getenv == nil {
		deps.Getenv = os.Getenv
	}
	if deps.Pace == (Pace{}) {
		deps.Pace = DefaultPace
	}
	n := &Notifier{deps: deps, metrics: newMetrics()}
	n.log = cmp.Or(deps.Logger, slog.New(slog.DiscardHandler)).With("component", "webhooks")
	client := newClient()
	for i, config := range endpoints {
		signer, err := newSigner(deps.Getenv(config.SecretEnv))
		if err != nil {
			return nil, fmt.Errorf("webhooks[%d].secret_env: the variable %s %w", i,
				config.SecretEnv, err)
		}
		e := &endpoint{Endpoint: config.withDefaults(), store: deps.Store,
			progress: deps.Progress, signer: signer, client: client, pace: deps.Pace,
			metrics: n.metrics, log: n.log.With("endpoint", config.Name)}
		n.metrics.start(config.Name)
		n.endpoints = append(n.endpoints, e)
	}
	if deps.Registerer != nil {
		for _, c := range n.metrics.all() {
			if err := deps.Registerer.Register(c); err != nil {
				return nil, fmt.Errorf("register metrics of webhooks: %w", err)
			}
		}
	}
	return n, nil
}

// Run delivers events until ctx ends.
func (n *Notifier) Run(ctx context.Context) error {
	if len(n.endpoints) == 0 {
		<-ctx.Done()
		return nil
	}
	for ctx.Err() == nil {
		if err := n.session(ctx); err != nil && ctx.Err() == nil {
			n.log.WarnContext(ctx, "webhooks stopped, trying again", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(n.deps.Pace.Look):
		}
	}
	return nil
}

// session registers and delivers until the lease is lost or ctx ends.
func (n *Notifier) session(ctx context.Context) error {
	owner, err := n.deps.Store.Register(ctx, n.deps.Node+"/webhooks", n.deps.Pace.Lease)
	if err != nil {
		return err
	}
	working, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	var parts sync.WaitGroup
	parts.Go(func() { n.renew(working, owner, lost) })
	for _, e := range n.endpoints {
		parts.Go(func() { e.run(working, owner) })
	}
	<-working.Done()
	parts.Wait()
	if ctx.Err() == nil {
		return context.Cause(working)
	}
	// Another process need not wait for the end of the lease.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.deps.Pace.Lease)
	defer cancel()
	return n.deps.Store.Unregister(ending, owner)
}

// renew keeps the lease. It ends the session when the lease may have ended.
func (n *Notifier) renew(ctx context.Context, o store.Owner, lost context.CancelCauseFunc) {
	tick := time.NewTicker(n.deps.Pace.Lease / 3)
	defer tick.Stop()
	for renewed := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		asked := time.Now()
		limited, cancel := context.WithTimeout(ctx, n.deps.Pace.Lease/3)
		err := n.deps.Store.Renew(limited, o, n.deps.Pace.Lease)
		cancel()
		switch {
		case err == nil:
			renewed = asked
		case errors.Is(err, store.ErrFenced) || time.Since(renewed) > n.deps.Pace.Lease:
			lost(err)
			return
		}
	}
}

// newClient returns the client of all endpoints. Answers are hardly read, and redirects are not
// followed: the URL is the operator's choice, not the endpoint's.
func newClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = 16 << 10
	transport.MaxIdleConnsPerHost = parallel
	transport.DisableCompression = true
	return &http.Client{
		Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}
