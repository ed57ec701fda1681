package dispatch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidefill/tidefill/dispatch/openai"
)

// runner is a configured upstream with its client and the models that it serves.
type runner struct {
	Upstream
	name    string
	made    runnerConfig
	client  *openai.Client
	streams streams
	engines engines // of a gateway
	dropped droppedLog
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
	// notLoaded are models that it knows and has not loaded, as it says.
	notLoaded []string
	// state is what it said of itself last, which counts until then.
	state      RunnerState
	stateUntil time.Time
}

// modelList is what a runner answered when it was asked for its models.
type modelList struct {
	names    []string // none: it did not answer, or unlisted
	unlisted bool     // it has no list
	first    bool     // it is its first answer, or its first list
	engine   string   // identifies how the models are served, as far as the list says
}

func newRunner(cfg Config, u Upstream, spool Spool) (*runner, error) {
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
	client, err := openai.New(openai.Config{
		URL: u.URL, APIKey: key, Header: u.header(defaults),
		TenantHeaders: u.tenantHeaders(),
		MaxAnswer:     cfg.MaxAnswerBytes, MaxAnswerOf: cfg.MaxAnswerBytesOf,
		DialTimeout: cfg.DialTimeout,
		Spool:       func(ctx context.Context) (openai.File, error) { return spool.Temporary(ctx) },
	})
	if err != nil {
		return nil, err
	}
	made := &runner{Upstream: u, name: name, made: cfg.ofRunners(), client: client,
		since: map[string]time.Time{}, earlier: map[string]bool{},
		priority: u.Dialect.EnginePriority.value(),
		engines:  engines{lists: func(planned string) bool { return u.lists(name, planned) }}}
	if len(u.Models) > 0 {
		made.setModels(slices.Clone(u.Models), time.Now())
	}
	return made, nil
}

// maxEarlier limits the models that a runner is known to have served before. One that invents
// names must not fill the memory.
const maxEarlier = 1000

// setModels sets the models that the runner serves.
func (u *runner) setModels(models []string, now time.Time) {
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
		if _, still := since[m]; !still && len(u.earlier) < maxEarlier {
			u.earlier[m] = true
		}
	}
	u.models, u.since, u.unlisted, u.answered = models, since, false, true
	u.streams.forget(since)
}

// watchModels asks the runner again and again which models it serves, and reports each answer.
// After a failure it keeps the models that it had: the breaker decides whether it is used.
func (u *runner) watchModels(
	ctx context.Context, cfg Config, log *slog.Logger, report func(u *runner, list modelList),
) {
	if len(u.Models) > 0 {
		if u.logOnce() {
			log.InfoContext(ctx, "a runner serves the models of upstreams[].models; it is not "+
				"asked for a list", "runner", u.name, "models", len(u.Models))
		}
		u.setModels(u.Models, time.Now())
		report(u, modelList{names: u.Models})
		return
	}
	for {
		wait := cfg.ModelsEvery
		list, ok := u.askModels(ctx, cfg, log)
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

func (u *runner) askModels(
	ctx context.Context, cfg Config, log *slog.Logger,
) (got modelList, ok bool) {
	asking, cancel := context.WithTimeout(ctx, cfg.DialTimeout)
	defer cancel()
	list, err := u.client.Models(asking, cfg.MaxModels)
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
				"runner", u.name, "answer", err)
		}
		return modelList{unlisted: true, first: first}, true
	}
	u.silent, u.cut = err != nil, u.cut || list.Cut
	u.mu.Unlock()
	if err != nil {
		if !was && ctx.Err() == nil {
			log.WarnContext(ctx, "could not list the models of a runner, trying again",
				"runner", u.name, "error", err)
		}
		return modelList{}, false
	}
	if was {
		log.InfoContext(ctx, "a runner lists its models again", "runner", u.name)
	}
	if list.Cut && !wasCut {
		log.WarnContext(ctx, "a runner lists more models than are used, or longer names; name "+
			"those to use in upstreams[].models, or raise dispatch.tuning.max_models",
			"runner", u.name, "max_models", cfg.MaxModels, "max_name_bytes", openai.MostModelName)
	}
	u.setModels(list.Names, time.Now())
	return modelList{names: list.Names, first: first, engine: list.Engine}, true
}

// logOnce reports whether the source of the runner's models is to be logged, which is once.
func (u *runner) logOnce() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	first := !u.logged
	u.logged = true
	return first
}

func modelsOf(runners map[string]*runner) []ModelInfo {
	byID := map[string]*ModelInfo{}
	for _, u := range runners {
		u.mu.Lock()
		for _, m := range u.models {
			info := byID[m]
			if info == nil {
				info = &ModelInfo{ID: m, Since: u.since[m]}
				byID[m] = info
			}
			info.Runners = append(info.Runners, u.name)
			if since := u.since[m]; since.Before(info.Since) {
				info.Since = since
			}
		}
		u.mu.Unlock()
	}
	all := make([]ModelInfo, 0, len(byID))
	for _, info := range byID {
		slices.Sort(info.Runners)
		all = append(all, *info)
	}
	slices.SortFunc(all, func(a, b ModelInfo) int { return cmp.Compare(a.ID, b.ID) })
	return all
}
