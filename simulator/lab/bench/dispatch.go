package bench

import (
	"context"
	"fmt"
	"time"
)

// dispatchLineBytes is the length of a line with a prompt of a short paragraph.
const dispatchLineBytes = 600

// warmUp is the number of lines sent before the measurement, so that connections are open and
// buffers have grown.
const warmUp = 2000

// benchDispatch compares a batch with the bare loop: the same bodies, at the same concurrency, to
// the same upstream.
func benchDispatch(ctx context.Context, l *environment) ([]figure, error) {
	path, err := l.writeBatchFile("dispatch.jsonl", l.sizes.dispatchLines, dispatchLineBytes)
	if err != nil {
		return nil, err
	}
	warmPath, err := l.writeBatchFile("warm.jsonl", min(warmUp, l.sizes.dispatchLines),
		dispatchLineBytes)
	if err != nil {
		return nil, err
	}
	up, err := l.startUpstream(ctx)
	if err != nil {
		return nil, err
	}
	defer up.kill()
	bare, err := l.startLoop(ctx, path)
	if err != nil {
		return nil, err
	}
	defer bare.kill()

	var figures []figure
	for _, concurrency := range l.sizes.concurrencies {
		c := comparison{environment: l, up: up, bare: bare, concurrency: concurrency,
			lines: l.sizes.dispatchLines}
		if err := c.run(ctx, path, warmPath); err != nil {
			return nil, fmt.Errorf("at concurrency %d: %w", concurrency, err)
		}
		figures = append(figures, c.figures()...)
	}
	return figures, nil
}

// comparison measures the daemon and the bare loop at one concurrency.
type comparison struct {
	*environment
	up          *upstream
	bare        loop
	concurrency int
	lines       int

	theirs, ours []measurement
}

// measurement is one side of one run.
type measurement struct {
	wall, cpu time.Duration
	sending   float64 // lines per second between the first and the last request at the upstream
	// streamed is the share of lines that were streamed.
	streamed float64
}

func (c *comparison) run(ctx context.Context, path, warmPath string) error {
	data, err := c.newDir("dispatch")
	if err != nil {
		return err
	}
	d, err := c.startDaemon(ctx, data, c.up.url, "flowcontrol.policy=fixed",
		fmt.Sprintf("flowcontrol.fixed.per_runner=%d", c.concurrency))
	if err != nil {
		return err
	}
	defer d.kill()
	warm, err := d.upload(ctx, warmPath)
	if err != nil {
		return err
	}
	file, err := d.upload(ctx, path)
	if err != nil {
		return err
	}
	bareURL := c.up.url + "/v1/chat/completions"
	if err := c.bare.post(bareURL, c.concurrency, min(warmUp, c.lines)); err != nil {
		return err
	}
	if err := d.complete(ctx, warm); err != nil {
		return err
	}
	profiled := d.profileCPU(ctx, c.environment, fmt.Sprintf("dispatch-%d", c.concurrency),
		10*time.Second)
	for i := range c.runs {
		c.logf("dispatch at concurrency %d: run %d of %d", c.concurrency, i+1, c.runs)
		theirs, err := c.measure(ctx, c.bare.process, func() error {
			return c.bare.post(bareURL, c.concurrency, c.lines)
		})
		if err != nil {
			return err
		}
		ours, err := c.measure(ctx, d.process, func() error { return c.complete(ctx, d, file) })
		if err != nil {
			return err
		}
		c.theirs, c.ours = append(c.theirs, theirs), append(c.ours, ours)
	}
	return profiled()
}

// complete runs the batch. Until all lines have arrived it polls the upstream instead of the
// daemon, because answers of the daemon would count as CPU time of the lines.
func (c *comparison) complete(ctx context.Context, d *daemon, file string) error {
	id, err := d.create(ctx, file)
	if err != nil {
		return err
	}
	if err := c.up.awaitCount(ctx, int64(c.lines)); err != nil {
		return fmt.Errorf("%w\n%s", err, tail(d.log))
	}
	return d.await(ctx, id, "completed")
}

// measure measures one side while it works.
func (c *comparison) measure(
	ctx context.Context, p *process, work func() error,
) (measurement, error) {
	if err := c.up.clear(ctx); err != nil {
		return measurement{}, err
	}
	used, err := p.cpuTime()
	if err != nil {
		return measurement{}, err
	}
	begun := time.Now()
	if err := work(); err != nil {
		return measurement{}, err
	}
	wall := time.Since(begun)
	usedThen, err := p.cpuTime()
	if err != nil {
		return measurement{}, err
	}
	seen, err := c.up.ledger(ctx)
	if err == nil && seen.Count != int64(c.lines) {
		err = fmt.Errorf("the upstream saw %d requests instead of %d", seen.Count, c.lines)
	}
	return measurement{wall: wall, cpu: usedThen - used, sending: seen.perSecond(),
		streamed: float64(seen.Streamed) / float64(max(1, seen.Count))}, err
}

func (c *comparison) figures() []figure {
	rate := func(m measurement) float64 { return float64(c.lines) / m.wall.Seconds() }
	sending := func(m measurement) float64 { return m.sending }
	cpu := func(m measurement) float64 { return microseconds(m.cpu) / float64(c.lines) }
	at := fmt.Sprintf(" of the bare loop's, concurrency %d", c.concurrency)
	return []figure{
		c.compare("Dispatch rate, created to completed"+at, atLeast(0.8), "lines/s", rate),
		c.compare("Dispatch rate, first to last request"+at, nil, "lines/s", sending),
		c.compare("CPU per line"+at, atMost(1.5), "µs", cpu),
	}
}

// compare returns the figure of the ratios of all runs.
func (c *comparison) compare(
	what string, g *goal, unit string, of func(measurement) float64,
) figure {
	f := figure{What: what, Goal: g}
	var ours, theirs []float64
	for i := range c.ours {
		ours, theirs = append(ours, of(c.ours[i])), append(theirs, of(c.theirs[i]))
		f.Values = append(f.Values, ours[i]/theirs[i])
	}
	f.Detail = fmt.Sprintf("%s against %s %s", number(median(ours)), number(median(theirs)), unit)
	return f
}
