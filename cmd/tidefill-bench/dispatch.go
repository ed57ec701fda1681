package main

import (
	"context"
	"fmt"
	"time"
)

// dispatchLineBytes is the length of a line whose prompt is a short paragraph.
const dispatchLineBytes = 600

// warmUp is how many lines are sent before anything is measured: connections are open then, and
// buffers have their size.
const warmUp = 2000

// benchDispatch compares a batch with the bare loop: the same bodies, at the same concurrency, to
// the same upstream.
func benchDispatch(ctx context.Context, l *lab) ([]figure, error) {
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
		race := race{lab: l, up: up, bare: bare, concurrency: concurrency,
			lines: l.sizes.dispatchLines}
		if err := race.run(ctx, path, warmPath); err != nil {
			return nil, fmt.Errorf("at concurrency %d: %w", concurrency, err)
		}
		figures = append(figures, race.figures()...)
	}
	return figures, nil
}

// race is the comparison at one concurrency.
type race struct {
	*lab
	up          *upstream
	bare        loop
	concurrency int
	lines       int

	theirs, ours []lap
}

// lap is one side of one run.
type lap struct {
	wall, cpu time.Duration
	sending   float64 // lines per second between the first and the last request at the upstream
}

func (r *race) run(ctx context.Context, path, warmPath string) error {
	data, err := r.newDir("dispatch")
	if err != nil {
		return err
	}
	d, err := r.startDaemon(ctx, data, r.up.url, "flowcontrol.policy=fixed",
		fmt.Sprintf("flowcontrol.fixed.per_runner=%d", r.concurrency))
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
	bareURL := r.up.url + "/v1/chat/completions"
	if err := r.bare.post(bareURL, r.concurrency, min(warmUp, r.lines)); err != nil {
		return err
	}
	if err := d.complete(ctx, warm); err != nil {
		return err
	}
	profiled := d.profileCPU(ctx, r.lab, fmt.Sprintf("dispatch-%d", r.concurrency), 10*time.Second)
	for i := range r.runs {
		r.say("dispatch at concurrency %d: run %d of %d", r.concurrency, i+1, r.runs)
		theirs, err := r.lap(ctx, r.bare.process, func() error {
			return r.bare.post(bareURL, r.concurrency, r.lines)
		})
		if err != nil {
			return err
		}
		ours, err := r.lap(ctx, d.process, func() error { return r.complete(ctx, d, file) })
		if err != nil {
			return err
		}
		r.theirs, r.ours = append(r.theirs, theirs), append(r.ours, ours)
	}
	return profiled()
}

// complete runs the batch. The upstream tells when the end is near, so that the daemon isn't asked
// all the while: its answers would count as CPU time of the lines.
func (r *race) complete(ctx context.Context, d *daemon, file string) error {
	id, err := d.create(ctx, file)
	if err != nil {
		return err
	}
	if err := r.up.awaitCount(ctx, int64(r.lines)); err != nil {
		return fmt.Errorf("%w\n%s", err, tail(d.log))
	}
	return d.await(ctx, id, "completed")
}

// lap measures one side while it works.
func (r *race) lap(ctx context.Context, p *process, work func() error) (lap, error) {
	if err := r.up.clear(ctx); err != nil {
		return lap{}, err
	}
	used, err := p.cpuTime()
	if err != nil {
		return lap{}, err
	}
	begun := time.Now()
	if err := work(); err != nil {
		return lap{}, err
	}
	wall := time.Since(begun)
	usedThen, err := p.cpuTime()
	if err != nil {
		return lap{}, err
	}
	seen, err := r.up.ledger(ctx)
	if err == nil && seen.Count != int64(r.lines) {
		err = fmt.Errorf("the upstream saw %d requests instead of %d", seen.Count, r.lines)
	}
	return lap{wall: wall, cpu: usedThen - used, sending: seen.perSecond()}, err
}

func (r *race) figures() []figure {
	rate := func(x lap) float64 { return float64(r.lines) / x.wall.Seconds() }
	sending := func(x lap) float64 { return x.sending }
	cpu := func(x lap) float64 { return microseconds(x.cpu) / float64(r.lines) }
	at := fmt.Sprintf(" of the bare loop's, concurrency %d", r.concurrency)
	return []figure{
		r.compare("Dispatch rate, created to completed"+at, atLeast(0.8), "lines/s", rate),
		r.compare("Dispatch rate, first to last request"+at, nil, "lines/s", sending),
		r.compare("CPU per line"+at, atMost(1.5), "µs", cpu),
	}
}

// compare makes a figure of the ratios, run by run.
func (r *race) compare(what string, g *goal, unit string, of func(lap) float64) figure {
	f := figure{What: what, Goal: g}
	var ours, theirs []float64
	for i := range r.ours {
		ours, theirs = append(ours, of(r.ours[i])), append(theirs, of(r.theirs[i]))
		f.Values = append(f.Values, ours[i]/theirs[i])
	}
	f.Detail = fmt.Sprintf("%s against %s %s", number(median(ours)), number(median(theirs)), unit)
	return f
}
