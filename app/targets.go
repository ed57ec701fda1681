package app

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/aimd"
)

// targets notes which servers of external templates batches use. They are upstreams meanwhile.
type targets struct {
	changed chan struct{} // capacity 1: others are in use

	mu       sync.Mutex
	problems []string // why some can't be used
}

func newTargets() *targets { return &targets{changed: make(chan struct{}, 1)} }

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
		if _, err := u.AskHeader(); err != nil {
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
	cfg, problems := withTargets(a.kubernetes.withFound(cfg), a.dispatcher.Targets())
	a.targets.mu.Lock()
	defer a.targets.mu.Unlock()
	a.targets.problems = problems
	return cfg
}
