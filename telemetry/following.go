package telemetry

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"sync"
)

// following is what a Reader reads while it runs. Only Run's goroutine uses it.
type following struct {
	reader     *Reader
	client     *http.Client
	common     polls      // of what belongs to no runner
	prometheus *promQuery // nil: none is configured
	pages      *runnerQuery
	runners    []*followed
}

// followed is a runner that is read.
type followed struct {
	runner Runner
	cancel context.CancelFunc
	polls
}

// polls are the goroutines that read sources.
type polls struct{ running sync.WaitGroup }

// start begins to read a source until ctx is done.
func (p *polls) start(ctx context.Context, r *Reader, s source) {
	if s.every > 0 {
		p.running.Go(func() { r.poll(ctx, s) })
	}
}

// stop waits until nothing is read any more. The context of all must be done.
func (f *following) stop() {
	for _, x := range f.runners {
		x.running.Wait()
		x.cancel()
	}
	f.common.running.Wait()
}

// startPrometheus begins to query Prometheus for what belongs to no single runner.
func (f *following) startPrometheus(ctx context.Context) {
	r := f.reader
	cfg := r.cfg.Prometheus
	f.prometheus = newPromQuery(cfg, r.access, r.log, r.gauges.drop("prometheus"))
	if len(cfg.TTFT)+len(cfg.TPOT) > 0 {
		f.common.start(ctx, r, source{target: "prometheus", kind: "gateway", every: cfg.Every,
			timeout: 8 * cfg.Timeout, read: f.prometheus.read})
	}
	if cfg.Runners.Label != "" {
		f.pages = &runnerQuery{groups: newGroups(f.prometheus, r), reader: r}
		f.common.start(ctx, r, source{target: "prometheus", kind: pagesKind, every: cfg.Every,
			read: f.pages.read}) // which limits its time
	}
}

// follow stops reading the runners that are not wanted any more, and starts reading those that are
// not read yet.
func (f *following) follow(ctx context.Context, wanted []Runner) {
	kept := f.runners[:0:0]
	for _, x := range f.runners {
		if slices.ContainsFunc(wanted, x.runner.is) {
			kept = append(kept, x)
			continue
		}
		x.cancel()
		x.running.Wait()
	}
	for _, to := range wanted {
		if !slices.ContainsFunc(kept, func(x *followed) bool { return x.runner.is(to) }) {
			kept = append(kept, f.start(ctx, to))
		}
	}
	f.runners = kept
	if f.pages != nil {
		f.pages.follow(wanted)
	}
}

// is reports whether two runners are read in the same way.
func (r Runner) is(other Runner) bool { return reflect.DeepEqual(r, other) }

// start begins to read a runner.
func (f *following) start(ctx context.Context, to Runner) *followed {
	r := f.reader
	ctx, cancel := context.WithCancel(ctx)
	x := &followed{runner: to, cancel: cancel}
	if to.Metrics != "" {
		m := r.metricsOf(to)
		m.client = f.client
		x.start(ctx, r, source{target: to.Name, kind: "metrics", every: r.cfg.Every,
			fastest: r.cfg.Fastest, timeout: readTimeout, read: m.read})
	}
	if to.Base != "" {
		c := &capabilities{runner: to, client: f.client, onDrop: r.gauges.drop(to.Name)}
		x.start(ctx, r, source{target: to.Name, kind: "capabilities",
			every: r.cfg.CapabilitiesEvery, timeout: readTimeout, read: c.read})
	}
	if to.Engines != "" && f.pages != nil {
		x.start(ctx, r, r.enginesOfPrometheus(f.prometheus, to))
	}
	return x
}
