package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/runner"
	"github.com/tidefill/tidefill/store"
)

// Runner is a configured upstream with its client and the models that it serves.
type Runner struct {
	Upstream
	Name    string // in metrics, logs and the API; hides that of the configuration
	Streams Streams
	made    Config
	client  *openai.Client
	engines engines // of a gateway
	dropped droppedLog
	// server and serverHeader are where requests of users go, and what they get.
	server       *url.URL
	serverHeader http.Header
	// priority is the value of the member priority that lines get; nil: none.
	priority json.RawMessage
	// refusesPriority: the server refuses bodies with it, so none get it from now on.
	refusesPriority atomic.Bool

	mu       sync.Mutex
	models   []string
	since    map[string]time.Time // when each model was first seen
	silent   bool                 // it did not answer the last request for its models
	cut      bool                 // it lists more models than are used, which was logged
	unlisted bool                 // it has no list of models, and is sent what no other lists
	answered bool                 // it has said once which models it serves, or that it can't say
	earlier  map[string]bool      // models that it listed before, at most maxEarlier
	logged   bool                 // where its models come from, if not from a list of its own
	// state is what it said of itself last, which counts until then.
	state      runner.State
	stateUntil time.Time
}

// List is what a runner answered when it was asked for its models.
type List struct {
	Names    []string // none: it did not answer, or unlisted
	Unlisted bool     // it has no list
	First    bool     // it is its first answer, or its first list
	Engine   string   // identifies how the models are served, as far as the list says
}

// Config configures runners, as the fields of the same names of a dispatcher's.
type Config struct {
	MaxAnswerBytes           int64
	MaxAnswerBytesOf         map[string]int64
	DialTimeout, ModelsEvery time.Duration
	MaxModels                int
	// Queues carries the requests of upstreams with Queued; nil: there is no such upstream.
	Queues Queues
}

// Queues carries the requests of runners through queues.
type Queues interface {
	// Carrier returns the carrier of a runner.
	Carrier(runner string) openai.Carrier
}

// tempFiles makes temporary files, for answers that do not fit in memory.
type tempFiles interface {
	Temporary(ctx context.Context) (store.Temporary, error)
}

// New returns the runner of an upstream.
func New(cfg Config, u Upstream, spool tempFiles) (*Runner, error) {
	name, err := u.Runner()
	if err != nil {
		return nil, err
	}
	key, err := u.key()
	if err != nil {
		return nil, err
	}
	if err := u.Validate(); err != nil {
		return nil, fmt.Errorf("upstream %s: %w", name, err)
	}
	defaults := http.Header{"X-Priority": {"low"}}
	u.Dialect.addTo(defaults)
	var carrier openai.Carrier
	if u.Queued {
		if cfg.Queues == nil {
			return nil, fmt.Errorf("upstream %s: its pool sends through a queue, and there is no "+
				"Redis for it; set async.url and start again", name)
		}
		carrier = cfg.Queues.Carrier(name)
	}
	client, err := openai.New(openai.Config{
		Carrier: carrier,
		URL:     u.URL, APIKey: key, Header: u.header(defaults),
		TenantHeaders: u.tenantHeaders(),
		MaxAnswer:     cfg.MaxAnswerBytes, MaxAnswerOf: cfg.MaxAnswerBytesOf,
		DialTimeout: cfg.DialTimeout,
		Spool:       func(ctx context.Context) (openai.File, error) { return spool.Temporary(ctx) },
	})
	if err != nil {
		return nil, err
	}
	server, err := url.Parse(u.Base())
	if err != nil {
		return nil, fmt.Errorf("upstream %s: %w", name, err)
	}
	serverHeader := u.header(http.Header{})
	if key != "" {
		serverHeader.Set("Authorization", "Bearer "+key)
	}
	made := &Runner{Upstream: u, Name: name, made: cfg, client: client,
		server: server, serverHeader: serverHeader,
		since: map[string]time.Time{}, earlier: map[string]bool{},
		priority: u.Dialect.EnginePriority.value(),
		engines:  engines{lists: func(planned string) bool { return u.lists(name, planned) }}}
	if len(u.Models) > 0 {
		made.setModels(slices.Clone(u.Models), time.Now())
	}
	return made, nil
}

// MaxEarlier limits the models that a runner is known to have served before. One that invents
// names must not fill the memory.
const MaxEarlier = 1000

// setModels sets the models that the runner serves.
func (u *Runner) setModels(models []string, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	since := make(map[string]time.Time, len(models))
	for _, m := range models {
		since[m] = now
		if before, known := u.since[m]; known {
			since[m] = before
		}
	}
	for m := range u.since {
		if _, still := since[m]; !still && len(u.earlier) < MaxEarlier {
			u.earlier[m] = true
		}
	}
	u.models, u.since, u.unlisted, u.answered = models, since, false, true
	u.Streams.forget(models)
}

// WatchModels asks the runner again and again which models it serves, and reports each answer.
// After a failure it keeps the models that it had: the breaker decides whether it is used.
func (u *Runner) WatchModels(
	ctx context.Context, log *slog.Logger, report func(u *Runner, list List),
) {
	if len(u.Models) > 0 {
		if u.logOnce() {
			log.InfoContext(ctx, "a runner serves the models of upstreams[].models; it is not "+
				"asked for a list", "runner", u.Name, "models", len(u.Models))
		}
		u.setModels(u.Models, time.Now())
		report(u, List{Names: u.Models})
		return
	}
	for {
		wait := u.made.ModelsEvery
		list, ok := u.askModels(ctx, log)
		if report(u, list); !ok {
			wait = min(wait, time.Second)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (u *Runner) askModels(
	ctx context.Context, log *slog.Logger,
) (got List, ok bool) {
	asking, cancel := context.WithTimeout(ctx, u.made.DialTimeout)
	defer cancel()
	list, err := u.client.Models(asking, u.made.MaxModels)
	u.mu.Lock()
	was, wasCut := u.silent, u.cut
	first := !u.answered || u.unlisted
	// A server that has had a list before is being replaced, and has it again soon.
	if errors.Is(err, openai.ErrNoModelList) && len(u.models) == 0 {
		first = !u.answered
		u.silent, u.unlisted, u.answered = false, true, true
		u.mu.Unlock()
		if u.logOnce() {
			log.InfoContext(ctx, "a runner has no list of models; it is sent the lines of every "+
				"model that no other runner lists, or name its models in upstreams[].models",
				"runner", u.Name, "answer", err)
		}
		return List{Unlisted: true, First: first}, true
	}
	u.silent, u.cut = err != nil, u.cut || list.Cut
	u.mu.Unlock()
	if err != nil {
		if !was && ctx.Err() == nil {
			log.WarnContext(ctx, "could not list the models of a runner, trying again",
				"runner", u.Name, "error", err)
		}
		return List{}, false
	}
	if was {
		log.InfoContext(ctx, "a runner lists its models again", "runner", u.Name)
	}
	if list.Cut && !wasCut {
		log.WarnContext(ctx, "a runner lists more models than are used, or longer names; name "+
			"those to use in upstreams[].models",
			"runner", u.Name, "max_models", u.made.MaxModels, "max_name_bytes",
			openai.MaxModelName)
	}
	u.setModels(list.Names, time.Now())
	return List{Names: list.Names, First: first, Engine: list.Engine}, true
}

// logOnce reports whether the source of the runner's models is to be logged, which is once.
func (u *Runner) logOnce() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	first := !u.logged
	u.logged = true
	return first
}

// Lists returns the models that the runner lists now.
func (u *Runner) Lists() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.models
}

// EachModel calls do for the models that the runner lists now, with the times when they were first
// seen.
func (u *Runner) EachModel(do func(model string, since time.Time)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, m := range u.models {
		do(m, u.since[m])
	}
}

// HasAnswered reports whether the runner has said once which models it serves, or that it can't
// say.
func (u *Runner) HasAnswered() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.answered
}

// TakesAny reports whether the runner has no list, and is sent what no other lists.
func (u *Runner) TakesAny() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.unlisted
}

// Knows reports whether the runner serves the model, has served it, or takes any.
func (u *Runner) Knows(model string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, now := u.since[model]
	return now || u.earlier[model] || u.unlisted
}

// HasNotLoaded reports whether the runner knows the model and says that it has not loaded it.
func (u *Runner) HasNotLoaded(model string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Contains(u.state.NotLoaded, model)
}

// ForgetStreams forgets what is known of the streams of models that are not among these.
func (u *Runner) ForgetStreams(served []string) { u.Streams.forget(served) }

// LogsDrop reports whether the log is to say now that the runner drops requests for a reason.
func (u *Runner) LogsDrop(reason openai.DropReason, now time.Time) bool {
	return u.dropped.due(reason, now)
}

// SeeEngine takes over a reading of an engine behind the gateway. It returns the reading for flow
// control, and whether the engine counts only since now.
func (u *Runner) SeeEngine(
	now time.Time, name string, r *flowcontrol.Reading,
) (_ *flowcontrol.Reading, isNew bool) {
	return u.engines.see(now, name, r)
}

// Address returns the address of the server, without passwords.
func (u *Runner) Address() string {
	base, err := url.Parse(u.Base())
	if err != nil {
		return u.Name
	}
	base.User = nil
	return base.String()
}

// Server returns the URL of the server without /v1, and the header with which it takes requests of
// users: the key, and the configured headers. Neither may be changed.
func (u *Runner) Server() (*url.URL, http.Header) { return u.server, u.serverHeader }

// Send sends a request to the server.
func (u *Runner) Send(
	ctx context.Context, r openai.Request, scratch *openai.Scratch,
) (openai.Answer, error) {
	return u.client.Send(ctx, r, scratch)
}

// Close closes the connections that are not in use.
func (u *Runner) Close() { u.client.Close() }

// PriorityValue returns the value of the member priority that lines get; nil: none, or the server
// has refused it.
func (u *Runner) PriorityValue() json.RawMessage {
	if u.refusesPriority.Load() {
		return nil
	}
	return u.priority
}

// RefusePriority has no more lines get the member priority. It reports whether they did before.
func (u *Runner) RefusePriority() (first bool) {
	return u.refusesPriority.CompareAndSwap(false, true)
}

// Says records what the runner says of itself. It reports whether other models are loaded.
func (u *Runner) Says(now time.Time, state runner.State) (changed bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	changed = !slices.Equal(u.state.NotLoaded, state.NotLoaded)
	u.state, u.stateUntil = state, now.Add(stateHolds)
	return changed
}

// StopNow returns what the runner said last as an event; false: it has not said anything lately.
// The planner forgets it for runners that it does not plan with, such as those of another leader.
func (u *Runner) StopNow(now time.Time) (ev plan.RunnerStop, counts bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	why := stopReason(u.state, u.models)
	return plan.RunnerStop{Runner: u.Name, Reason: why, Until: u.stateUntil},
		u.stateUntil.After(now)
}

// Loaded returns those of the models that the runner has loaded, as far as it says; all if it has
// loaded none of them: then it is stopped and keeps its pool.
func (u *Runner) Loaded(models []string) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.state.NotLoaded) == 0 {
		return models
	}
	some := slices.DeleteFunc(slices.Clone(models), func(m string) bool {
		return slices.Contains(u.state.NotLoaded, m)
	})
	if len(some) == 0 {
		return models
	}
	return some
}

// MadeFrom reports whether the runner is the one that this configuration makes. Where its metrics
// are is of no interest here.
func (u *Runner) MadeFrom(from Upstream, cfg Config) bool {
	own := u.Upstream
	own.Metrics, from.Metrics = "", ""
	return reflect.DeepEqual(own, from) && reflect.DeepEqual(u.made, cfg)
}

// Continues reports whether the runner is the same server as an earlier one, with the same models
// configured. It is only reached in another way.
func (u *Runner) Continues(earlier *Runner) bool {
	return u.Address() == earlier.Address() && reflect.DeepEqual(u.Models, earlier.Models)
}

// Inherit takes over what is known of the models and the engines of an earlier runner that this one
// continues.
func (u *Runner) Inherit(earlier *Runner) {
	earlier.mu.Lock()
	defer earlier.mu.Unlock()
	u.models, u.since, u.earlier = earlier.models, maps.Clone(earlier.since),
		maps.Clone(earlier.earlier)
	u.silent, u.cut, u.unlisted = earlier.silent, earlier.cut, earlier.unlisted
	u.answered, u.logged = earlier.answered, earlier.logged
	u.state, u.stateUntil = earlier.state, earlier.stateUntil
	u.engines.inherit(&earlier.engines)
}

// Served returns the models that the runner serves or has served.
func (u *Runner) Served() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := append([]string(nil), u.models...)
	for m := range u.earlier {
		all = append(all, m)
	}
	return all
}
