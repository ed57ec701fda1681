package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tidefill/tidefill/internal/testservers"
	"github.com/tidefill/tidefill/runner/emulator"
	"github.com/tidefill/tidefill/simulator/lab/live"
)

// fleetRunners is the number of runners of benchFleet.
const fleetRunners = 16

// benchFleet measures what lines in flight on emulated runners cost, with and without streams. The
// pool is not shared, so that the daemon fills it.
func benchFleet(ctx context.Context, l *environment) ([]figure, error) {
	urls, stop, err := l.startFleet(ctx)
	defer stop()
	if err != nil {
		return nil, err
	}
	path, err := l.writeBatchFile("fleet.jsonl", l.sizes.fleetLines, dispatchLineBytes)
	if err != nil {
		return nil, err
	}
	var figures []figure
	for _, streams := range []string{"off", "some", "all"} {
		f := figure{Unit: "cores", Goal: atMost(1), What: fmt.Sprintf(
			"CPU of the daemon with %d lines in flight on %d runners, streams: %s",
			l.sizes.fleetInFlight, fleetRunners, streams)}
		for i := range l.runs {
			l.logf("fleet with streams %s: run %d of %d", streams, i+1, l.runs)
			cores, err := l.measureFleet(ctx, urls, path, streams)
			if err != nil {
				return nil, fmt.Errorf("streams: %s: %w", streams, err)
			}
			f.Values = append(f.Values, cores)
		}
		figures = append(figures, f)
	}
	return figures, nil
}

// startFleet starts the runners and returns their URLs and a function that ends them.
func (l *environment) startFleet(ctx context.Context) (urls []string, stop func(), err error) {
	var started []*process
	stop = func() {
		for _, p := range started {
			p.kill()
		}
	}
	c := emulator.DefaultConfig()
	c.Models = []string{model}
	config, err := json.Marshal(c)
	if err != nil {
		return nil, stop, err
	}
	for range fleetRunners {
		address, err := testservers.FreeAddress()
		if err != nil {
			return nil, stop, err
		}
		p, err := l.startRole(ctx, live.RunnerRole, address, string(config))
		if err != nil {
			return nil, stop, err
		}
		started, urls = append(started, p), append(urls, "http://"+address)
	}
	for _, url := range urls {
		for ask(ctx, "GET", url+"/v1/models", nil, nil) != nil {
			if err := pause(ctx, pollInterval); err != nil {
				return nil, stop, fmt.Errorf("wait for %s: %w", url, err)
			}
		}
	}
	return urls, stop, nil
}

// measureFleet returns the mean number of cores that the daemon uses while lines are in flight.
func (l *environment) measureFleet(
	ctx context.Context, urls []string, path, streams string,
) (float64, error) {
	data, err := l.newDir("fleet")
	if err != nil {
		return 0, err
	}
	d, err := l.startDaemon(ctx, data, strings.Join(urls, " "), "flowcontrol.policy=headroom",
		"flowcontrol.shared=false", "flowcontrol.headroom.streams="+streams,
		fmt.Sprintf("flowcontrol.headroom.per_pool=%d", l.sizes.fleetInFlight))
	if err != nil {
		return 0, err
	}
	defer d.kill()
	file, err := d.upload(ctx, path)
	if err != nil {
		return 0, err
	}
	if _, err := d.create(ctx, file); err != nil {
		return 0, err
	}
	if err := d.awaitInFlight(ctx, l.sizes.fleetInFlight*9/10); err != nil {
		return 0, err
	}
	used, err := d.cpuTime()
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := pause(ctx, l.sizes.fleetSpan); err != nil {
		return 0, err
	}
	now, err := d.cpuTime()
	return (now - used).Seconds() / time.Since(begun).Seconds(), err
}

// awaitInFlight waits until so many lines are in flight.
func (d *daemon) awaitInFlight(ctx context.Context, lines int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 3*time.Minute,
		errors.New("too few lines are in flight"))
	defer cancel()
	for {
		n, err := live.InFlight(ctx, d.admin)
		if err != nil {
			return err
		}
		if n >= lines {
			return nil
		}
		if err := pause(ctx, 10*pollInterval); err != nil {
			return fmt.Errorf("%w: %d of %d\n%s", context.Cause(ctx), n, lines, tail(d.log))
		}
	}
}
