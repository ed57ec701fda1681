package bench

import (
	"context"
	"fmt"
	"time"
)

// benchRestart measures the time until a daemon on a store with many batches is ready, and until it
// sends a new batch's first line. Every process but the first starts after a kill.
func benchRestart(ctx context.Context, l *environment) ([]figure, error) {
	data, err := l.prepareStore(ctx)
	if err != nil {
		return nil, err
	}
	up, err := l.startUpstream(ctx)
	if err != nil {
		return nil, err
	}
	defer up.kill()
	path, err := l.writeBatchFile("restart.jsonl", 10, dispatchLineBytes)
	if err != nil {
		return nil, err
	}
	waiting := grouped(l.sizes.waitingBatches)
	ready := figure{What: "Restart with " + waiting + " waiting batches, exec to ready",
		Unit: "s", Goal: atMost(1), Detail: "and " + grouped(l.sizes.endedBatches) + " ended ones"}
	served := figure{What: "Restart with " + waiting +
		" waiting batches, exec to first line of a new batch", Unit: "s"}
	idle := figure{What: "CPU while " + waiting + " batches wait", Unit: "% of a core"}
	for i := range l.runs {
		l.logf("restart: run %d of %d", i+1, l.runs)
		times, err := restart(ctx, l, up, data, path)
		if err != nil {
			return nil, err
		}
		ready.Values = append(ready.Values, times.ready.Seconds())
		served.Values = append(served.Values, times.served.Seconds())
		idle.Values = append(idle.Values, 100*times.idle)
	}
	return []figure{ready, served, idle}, nil
}

// restartTimes is what restart measures.
type restartTimes struct {
	ready, served time.Duration // since exec
	idle          float64       // share of a core used without work
}

func restart(
	ctx context.Context, l *environment, up *upstream, data, path string,
) (restartTimes, error) {
	if err := up.clear(ctx); err != nil {
		return restartTimes{}, err
	}
	begun := time.Now()
	d, err := l.startDaemon(ctx, data, up.url)
	if err != nil {
		return restartTimes{}, err
	}
	defer d.kill()
	ready := time.Since(begun)
	file, err := d.upload(ctx, path)
	if err != nil {
		return restartTimes{}, err
	}
	id, err := d.create(ctx, file)
	if err != nil {
		return restartTimes{}, err
	}
	first, err := up.awaitFirst(ctx)
	if err != nil {
		return restartTimes{}, fmt.Errorf("%w\n%s", err, tail(d.log))
	}
	if err := d.await(ctx, id, "completed"); err != nil {
		return restartTimes{}, err
	}
	idle, err := d.idleLoad(ctx, l.sizes.idle)
	return restartTimes{ready: ready, served: first.Sub(begun), idle: idle}, err
}

// idleLoad returns the share of a core that the idle daemon uses. It first waits for the same time,
// in which the daemon finishes its current work.
func (d *daemon) idleLoad(ctx context.Context, watch time.Duration) (float64, error) {
	if err := pause(ctx, watch); err != nil {
		return 0, err
	}
	used, err := d.cpuTime()
	if err != nil {
		return 0, err
	}
	if err := pause(ctx, watch); err != nil {
		return 0, err
	}
	usedThen, err := d.cpuTime()
	return (usedThen - used).Seconds() / watch.Seconds(), err
}
