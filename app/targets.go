package app

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
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

	mu       sync.Mutex
	problems []string            // why some can't be used
	keyless  []dispatch.Upstream // those of them whose keys can't be read
	keys     *filewatch.Files    // of all
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

// keysChanged reports whether the file of a key has changed since the last call, or a key that
// could not be read can be now.
func (t *targets) keysChanged() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.keys.Changed() || slices.ContainsFunc(t.keyless, func(u dispatch.Upstream) bool {
		_, err := u.AskHeader()
		return err == nil
	})
}

// watch watches the files of the keys of targets and of the fallbacks of pools.
func (t *targets) watch(pools []config.PoolConfig, used []dispatch.Target) {
	var files []string
	for _, target := range used {
		files = append(files, target.KeyFile)
	}
	for _, p := range pools {
		if p.Fallback.APIKeyFile != "" {
			files = append(files, p.Fallback.APIKeyFile)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.keys.Equal(files...) {
		t.keys = filewatch.New(files...)
		t.keys.Changed()
	}
}

// with returns a configuration with the targets that batches use, and with the fallbacks of pools.
// Each is a pool of its own: the sheds of the server and its budget limit what it gets. One that
// can't be used, such as one whose key can't be read, is left out until it can: others are not
// concerned.
func (t *targets) with(cfg config.Config, used []dispatch.Target) config.Config {
	t.watch(cfg.Pools, used) // before they are read, so that no change is missed
	all := append(targetsOf(cfg, used), fallbacksOf(cfg)...)
	cfg, problems, keyless := withElsewhere(cfg, all)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.problems, t.keyless = problems, keyless
	return cfg
}

// elsewhere is a server elsewhere, as an upstream with a pool of its own.
type elsewhere struct {
	is       string // in problems, such as external template
	upstream dispatch.Upstream
	flow     aimd.Config
}

// targetsOf lists the targets that batches use.
func targetsOf(cfg config.Config, used []dispatch.Target) (all []elsewhere) {
	for _, target := range used {
		own := flowcontrol.OwnConfig[aimd.Config](cfg.FlowControl, aimd.Name)
		own.RequestsPerMinute = target.RequestsPerMinute
		own.TokensPerMinute = target.TokensPerMinute
		all = append(all, elsewhere{"external template", dispatch.Upstream{Name: target.Pool,
			Pool: target.Pool, URL: target.URL, Models: target.Models,
			APIKeyEnv: target.KeyEnv, APIKeyFile: target.KeyFile}, own})
	}
	return all
}

// fallbacksOf lists the fallbacks of pools.
func fallbacksOf(cfg config.Config) (all []elsewhere) {
	for _, p := range cfg.Pools {
		f := p.Fallback
		if f.URL == "" {
			continue
		}
		name := p.FallbackName()
		own := flowcontrol.OwnConfig[aimd.Config](cfg.FlowControl, aimd.Name)
		own.RequestsPerMinute, own.TokensPerMinute = f.RequestsPerMinute, f.TokensPerMinute
		own.Money = aimd.Money{PerDay: f.MoneyPerDay, Input: f.PriceInput, Output: f.PriceOutput}
		all = append(all, elsewhere{"fallback", dispatch.Upstream{Name: name, Pool: name,
			URL: f.URL, Models: slices.Sorted(maps.Keys(f.Models)), Renamed: f.Models,
			APIKeyEnv: f.APIKeyEnv, APIKeyFile: f.APIKeyFile, Headers: f.Headers,
			Instead: p.Name}, own})
	}
	return all
}

// withElsewhere returns a configuration with the servers elsewhere that can be used. problems say
// why others can't, and keyless are those of them whose keys can't be read.
func withElsewhere(
	cfg config.Config, all []elsewhere,
) (_ config.Config, problems []string, keyless []dispatch.Upstream) {
	if len(all) == 0 {
		return cfg, nil, nil
	}
	cfg.Upstreams = slices.Clone(cfg.Upstreams)
	pools := maps.Clone(cfg.FlowControl.Pools)
	if pools == nil {
		pools = map[string]flowcontrol.Config{}
	}
	for _, e := range all {
		u := e.upstream
		u.Reserved, u.Metrics = true, "none"
		headers := map[string]string{"X-Priority": ""}
		maps.Copy(headers, u.Headers)
		u.Headers = headers
		header, err := u.AskHeader()
		if err != nil {
			keyless = append(keyless, u)
		} else {
			err = u.Validate()
		}
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s %s: %v", e.is, u.Pool, err))
			continue
		}
		u.KeyState = keyState(header)
		cfg.Upstreams = append(cfg.Upstreams, u)
		flow := cfg.FlowControl.Select(aimd.Name, e.flow)
		flow.Pools, flow.Shadow = nil, flowcontrol.Shadow{}
		pools[u.Pool] = flow
	}
	cfg.FlowControl.Pools = pools
	return cfg, problems, keyless
}

// keyState returns the SHA-256 of a header's key, in hexadecimal.
func keyState(header http.Header) string {
	digest := sha256.Sum256([]byte(header.Get("Authorization")))
	return hex.EncodeToString(digest[:])
}

// withFound returns a configuration with the upstreams that were found in Kubernetes, and with the
// servers of external templates.
func (a *App) withFound(cfg config.Config) config.Config {
	return a.targets.with(a.kubernetes.withFound(cfg), a.dispatcher.Targets())
}
