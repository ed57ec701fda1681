package app

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/aimd"
	"github.com/tidefill/tidefill/internal/filewatch"
)

// targets notes which servers of external templates batches use. They are upstreams meanwhile.
type targets struct {
	changed chan struct{} // capacity 1: others are in use

	// Owned by the goroutine that reloads.
	keyPaths []string         // of the files with keys
	keys     *filewatch.Files // at keyPaths

	mu       sync.Mutex
	problems []string // why some can't be used
}

func newTargets() *targets {
	return &targets{changed: make(chan struct{}, 1), keys: filewatch.New()}
}

// come notes that other targets are in use.
func (t *targets) come() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// away lists why some targets can't be used.
func (t *targets) away() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.problems
}

// targetsDue reports whether the configuration is to be made again: a file with a key has changed,
// or a target can't be used.
func (a *App) targetsDue(ctx context.Context) bool {
	t := a.targets
	if len(t.away()) > 0 {
		return true
	}
	if len(t.keyPaths) == 0 {
		return false
	}
	keys := t.keys // the read may outlast the call
	changed, err := blockable(ctx, a, t.keyPaths[0], func() (bool, error) {
		return keys.Changed(), nil
	})
	return err == nil && changed
}

// watch follows the files with the keys of targets.
func (t *targets) watch(used []dispatch.Target) {
	var paths []string
	for _, target := range used {
		if path := target.KeyFile; path != "" && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	if !slices.Equal(paths, t.keyPaths) {
		t.keyPaths, t.keys = paths, filewatch.New(paths...)
	}
}

// withTargets returns a configuration with the targets that batches use. Each is a pool of its own,
// for these batches alone: the sheds of the server and its budget limit their lines. One whose key
// can't be read is left out until it can, and is a problem.
func withTargets(cfg config.Config, used []dispatch.Target) (_ config.Config, problems []string) {
	if len(used) == 0 {
		return cfg, nil
	}
	cfg.Upstreams = slices.Clone(cfg.Upstreams)
	pools := maps.Clone(cfg.FlowControl.Pools)
	if pools == nil {
		pools = map[string]flowcontrol.Config{}
	}
	for _, target := range used {
		u := dispatch.Upstream{Name: target.Pool, Pool: target.Pool, URL: target.URL,
			Models: target.Models, APIKeyEnv: target.KeyEnv, APIKeyFile: target.KeyFile,
			Reserved: true, Metrics: "none", Headers: map[string]string{"X-Priority": ""}}
		u, err := u.Keyed()
		if err != nil {
			problems = append(problems, fmt.Sprintf("external template %s: %v", target.Pool, err))
			continue
		}
		cfg.Upstreams = append(cfg.Upstreams, u)
		own := flowcontrol.OwnConfig[aimd.Config](cfg.FlowControl, aimd.Name)
		own.RequestsPerMinute = target.RequestsPerMinute
		own.TokensPerMinute = target.TokensPerMinute
		flow := cfg.FlowControl.Select(aimd.Name, own)
		flow.Pools, flow.Shadow = nil, flowcontrol.Shadow{}
		pools[target.Pool] = flow
	}
	cfg.FlowControl.Pools = pools
	return cfg, problems
}

// withFound returns a configuration with the upstreams that were found in Kubernetes, and with the
// servers of external templates.
func (a *App) withFound(cfg config.Config) config.Config {
	used := a.dispatcher.Targets()
	a.targets.watch(used)
	cfg, problems := withTargets(a.kubernetes.withFound(cfg), used)
	a.targets.mu.Lock()
	defer a.targets.mu.Unlock()
	a.targets.problems = problems
	return cfg
}
