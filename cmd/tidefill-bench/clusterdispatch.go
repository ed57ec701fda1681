package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// clusterConcurrency is the number of lines in flight of the benchmarks of the cluster.
const clusterConcurrency = 100

// benchCluster compares daemons on the cluster store with daemons on the embedded one, which send
// the same lines to the same upstream, and counts what the cluster store asks its servers.
func benchCluster(ctx context.Context, l *environment) ([]figure, error) {
	c, err := l.startCluster(ctx)
	if err != nil {
		return nil, err
	}
	defer c.close()
	path, err := l.writeBatchFile("cluster.jsonl", l.sizes.dispatchLines, dispatchLineBytes)
	if err != nil {
		return nil, err
	}
	pair := storePair{cluster: c, path: path,
		lines: l.sizes.dispatchLines * l.sizes.sharedBatches}
	figures, err := pair.compare(ctx)
	if err != nil {
		return nil, err
	}
	counted, err := pair.count(ctx)
	return append(figures, counted...), err
}

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
	data, err := p.newDir(name)
	if err != nil {
		return nil, err
	}
	d, err := p.startDaemon(ctx, data, up.url, append(settings, "flowcontrol.policy=fixed",
		fmt.Sprintf("flowcontrol.fixed.per_runner=%d", clusterConcurrency))...)
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

// count counts transactions and requests while lines run at a rate that the upstream sets.
func (p *storePair) count(ctx context.Context) ([]figure, error) {
	up, err := p.startSlowUpstream(ctx, p.sizes.sharedSlow)
	if err != nil {
		return nil, err
	}
	defer up.kill()
	b, err := p.begin(ctx, "counted", up, p.settings()...)
	if err != nil {
		return nil, err
	}
	defer b.kill()
	rate := figure{What: "PostgreSQL transactions of one pool", Unit: "/s", Goal: atMost(5)}
	idle := figure{What: "PostgreSQL transactions of an idle daemon", Unit: "/s"}
	perLines := figure{What: "Requests to the bucket for 1,000 lines"}
	price := figure{What: "Price of the bucket's requests for 1,000,000 lines", Unit: "dollars"}
	for i := range p.runs {
		p.logf("transactions: run %d of %d", i+1, p.runs)
		resting, err := p.idleTransactions(ctx)
		if err != nil {
			return nil, err
		}
		idle.Values = append(idle.Values, resting)
		before, err := p.requests()
		if err != nil {
			return nil, err
		}
		if err := up.clear(ctx); err != nil {
			return nil, err
		}
		if err := p.submit(ctx, b); err != nil {
			return nil, err
		}
		n, err := p.transactionsPerSecond(ctx, resting, func() error {
			if err := up.awaitCount(ctx, int64(p.lines)); err != nil {
				return err
			}
			return pause(ctx, settleFiles)
		})
		if err != nil {
			return nil, err
		}
		if err := b.awaitNone(ctx); err != nil {
			return nil, err
		}
		seen, err := up.ledger(ctx)
		if err != nil {
			return nil, err
		}
		after, err := p.requests()
		if err != nil {
			return nil, err
		}
		rate.Values = append(rate.Values, n)
		rate.Detail = fmt.Sprintf("%.0f lines/s", seen.perSecond())
		requests, dollars, detail := priced(before, after)
		perLines.Values = append(perLines.Values, float64(requests)*1000/float64(p.lines))
		perLines.Detail = detail
		price.Values = append(price.Values, dollars*1_000_000/float64(p.lines))
		price.Detail = "at 0.005 dollars for 1,000 writes and 0.0004 for 1,000 reads"
	}
	return []figure{rate, idle, perLines, price}, nil
}

// idleTransactions returns the rate of transactions while nothing runs.
func (p *storePair) idleTransactions(ctx context.Context) (float64, error) {
	if err := pause(ctx, settleStatistics); err != nil {
		return 0, err
	}
	before, err := p.transactions(ctx)
	if err != nil {
		return 0, err
	}
	if err := pause(ctx, settleStatistics); err != nil {
		return 0, err
	}
	after, err := p.transactions(ctx)
	return float64(after-before) / settleStatistics.Seconds(), err
}

// settleFiles is above the time for the result files of the last batch. Polls for its end would be
// counted with the work.
const settleFiles = 3 * time.Second

// settleStatistics is above the time after which a server has noted the transactions of each
// connection.
const settleStatistics = 11 * time.Second

// transactionsPerSecond returns the rate of transactions during some work. Those of an idle daemon
// are known, to leave out the ones that come while the server's statistics settle.
func (p *storePair) transactionsPerSecond(
	ctx context.Context, idle float64, work func() error,
) (float64, error) {
	before, err := p.transactions(ctx)
	if err != nil {
		return 0, err
	}
	if _, err := p.records.Exec(ctx, "SELECT pg_stat_statements_reset()"); err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := work(); err != nil {
		return 0, err
	}
	span := time.Since(begun)
	if err := p.logStatements(ctx, span); err != nil {
		return 0, err
	}
	if err := pause(ctx, settleStatistics); err != nil {
		return 0, err
	}
	after, err := p.transactions(ctx)
	return (float64(after-before) - idle*settleStatistics.Seconds()) / span.Seconds(), err
}

// Prices of Amazon S3 Standard in us-east-1, in dollars for each request.
const (
	priceOfWrite = 0.005 / 1000 // PUT, POST, COPY and LIST
	priceOfRead  = 0.0004 / 1000
)

// priced returns how many requests came between two counts, and their price. Deletions are free.
func priced(before, after map[string]int) (requests int, dollars float64, detail string) {
	var parts []string
	for _, operation := range slices.Sorted(maps.Keys(after)) {
		n := after[operation] - before[operation]
		if n == 0 {
			continue
		}
		requests += n
		switch {
		case strings.Contains(operation, "Delete"), strings.Contains(operation, "Abort"):
		case strings.Contains(operation, "GetObject"), strings.Contains(operation, "HeadObject"):
			dollars += float64(n) * priceOfRead
		default:
			dollars += float64(n) * priceOfWrite
		}
		parts = append(parts, fmt.Sprintf("%d %s", n, operation))
	}
	return requests, dollars, strings.Join(parts, ", ")
}
