package bench

import (
	"context"
	"fmt"
	"time"
)

// clusterConcurrency is the number of lines in flight of the benchmarks of the cluster.
const clusterConcurrency = 100

// storePair measures batches of one file on both stores.
type storePair struct {
	*cluster
	path  string
	lines int // over all batches

	embedded, shared []measurement
}

// backend is a daemon on one of the stores, to which the file was uploaded.
type backend struct {
	*daemon
	file string
}

// begin starts a daemon, uploads the file and runs it once, so that connections are open, caches
// filled and buffers grown.
func (p *storePair) begin(
	ctx context.Context, name string, up *upstream, settings ...string,
) (*backend, error) {
	d, err := p.startBusy(ctx, name, up, settings...)
	if err != nil {
		return nil, err
	}
	b := &backend{daemon: d}
	if b.file, err = d.upload(ctx, p.path); err == nil {
		err = d.complete(ctx, b.file)
	}
	if err != nil {
		d.kill()
		return nil, err
	}
	return b, nil
}

// startBusy starts a daemon that has clusterConcurrency lines in flight.
func (l *environment) startBusy(
	ctx context.Context, name string, up *upstream, settings ...string,
) (*daemon, error) {
	data, err := l.newDir(name)
	if err != nil {
		return nil, err
	}
	return l.startDaemon(ctx, data, up.url, append(settings, "flowcontrol.policy=fixed",
		fmt.Sprintf("flowcontrol.fixed.per_runner=%d", clusterConcurrency))...)
}

// compare measures both stores in turns.
func (p *storePair) compare(ctx context.Context) ([]figure, error) {
	up, err := p.startUpstream(ctx)
	if err != nil {
		return nil, err
	}
	defer up.kill()
	embedded, err := p.begin(ctx, "embedded", up)
	if err != nil {
		return nil, err
	}
	defer embedded.kill()
	shared, err := p.begin(ctx, "shared", up, p.settings()...)
	if err != nil {
		return nil, err
	}
	defer shared.kill()
	profiled := shared.profileCPU(ctx, p.environment, "cluster", 40*time.Second)
	defer shared.profileHeap(ctx, p.environment, "cluster")
	for i := range p.runs {
		p.logf("dispatch on both stores: run %d of %d", i+1, p.runs)
		first, err := p.measure(ctx, up, embedded)
		if err != nil {
			return nil, fmt.Errorf("embedded: %w", err)
		}
		second, err := p.measure(ctx, up, shared)
		if err != nil {
			return nil, fmt.Errorf("cluster: %w", err)
		}
		p.embedded, p.shared = append(p.embedded, first), append(p.shared, second)
	}
	return p.figures(), profiled()
}

// measure runs all batches on one daemon.
func (p *storePair) measure(ctx context.Context, up *upstream, b *backend) (measurement, error) {
	if err := up.clear(ctx); err != nil {
		return measurement{}, err
	}
	used, err := b.cpuTime()
	if err != nil {
		return measurement{}, err
	}
	begun := time.Now()
	if err := p.run(ctx, up, b); err != nil {
		return measurement{}, err
	}
	m := measurement{wall: time.Since(begun)}
	usedThen, err := b.cpuTime()
	if err != nil {
		return m, err
	}
	seen, err := up.ledger(ctx)
	m.cpu, m.sending = usedThen-used, seen.perSecond()
	return m, err
}

// run runs all batches to their ends.
func (p *storePair) run(ctx context.Context, up *upstream, b *backend) error {
	if err := p.submit(ctx, b); err != nil {
		return err
	}
	if err := up.awaitCount(ctx, int64(p.lines)); err != nil {
		return fmt.Errorf("%w\n%s", err, tail(b.log))
	}
	return b.awaitNone(ctx)
}

func (p *storePair) submit(ctx context.Context, b *backend) error {
	for range p.sizes.sharedBatches {
		if _, err := b.create(ctx, b.file); err != nil {
			return err
		}
	}
	return nil
}

func (p *storePair) figures() []figure {
	sides := comparison{lines: p.lines, ours: p.shared, theirs: p.embedded}
	of := fmt.Sprintf(" on the cluster store, of the embedded one's, concurrency %d",
		clusterConcurrency)
	return []figure{
		sides.compare("Dispatch rate, first to last request,"+of, atLeast(0.8), "lines/s",
			func(m measurement) float64 { return m.sending }),
		sides.compare("Dispatch rate, created to completed,"+of, atLeast(0.8), "lines/s",
			func(m measurement) float64 { return float64(p.lines) / m.wall.Seconds() }),
		sides.compare("CPU of the daemon per line"+of, atMost(1.3), "µs",
			func(m measurement) float64 { return microseconds(m.cpu) / float64(p.lines) }),
	}
}
