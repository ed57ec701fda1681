package bench

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// settle is the time without work after which a daemon counts as idle.
const settle = 250 * time.Millisecond

// benchStart measures the time until the first line of a new batch is at the upstream, for a small
// and a large batch. It does not repeat for runs, because it creates several batches anyway.
func benchStart(ctx context.Context, l *environment) ([]figure, error) {
	return startFigures(ctx, l, "", 100)
}

// startFigures measures a daemon with the settings. most is the goal, in milliseconds.
func startFigures(
	ctx context.Context, l *environment, on string, most float64, settings ...string,
) ([]figure, error) {
	up, err := l.startUpstream(ctx)
	if err != nil {
		return nil, err
	}
	defer up.kill()
	data, err := l.newDir("start")
	if err != nil {
		return nil, err
	}
	d, err := l.startDaemon(ctx, data, up.url, settings...)
	if err != nil {
		return nil, err
	}
	defer d.kill()

	var figures []figure
	for _, lines := range []int{10, l.sizes.dispatchLines} {
		path, err := l.writeBatchFile("start.jsonl", lines, dispatchLineBytes)
		if err != nil {
			return nil, err
		}
		file, err := d.upload(ctx, path)
		if err != nil {
			return nil, err
		}
		if err := d.complete(ctx, file); err != nil { // opens connections
			return nil, err
		}
		l.logf("start of a batch of %s lines", grouped(lines))
		times, err := startTimes(ctx, l, d, up, file)
		if err != nil {
			return nil, err
		}
		what, of := "Create to first line sent, batch of "+grouped(lines)+" lines"+on,
			fmt.Sprintf("of %d", l.sizes.starts)
		figures = append(figures,
			figure{What: what + ", median", Unit: "ms", Values: times, Goal: atMost(most),
				Detail: of},
			figure{What: what + ", longest", Unit: "ms", Values: []float64{slices.Max(times)},
				Goal: atMost(most), Detail: of},
		)
	}
	return figures, nil
}

// startTimes creates batches, one after the other, and cancels each after its first line.
func startTimes(
	ctx context.Context, l *environment, d *daemon, up *upstream, file string,
) ([]float64, error) {
	var times []float64
	for range l.sizes.starts {
		if err := pause(ctx, settle); err != nil {
			return nil, err
		}
		if err := up.clear(ctx); err != nil {
			return nil, err
		}
		begun := time.Now()
		id, err := d.create(ctx, file)
		if err != nil {
			return nil, err
		}
		first, err := up.awaitFirst(ctx)
		if err != nil {
			return nil, err
		}
		times = append(times, milliseconds(first.Sub(begun)))
		// Fails if a small batch has already ended, which is fine.
		_ = ask(ctx, "POST", d.url+"/v1/batches/"+id+"/cancel", nil, nil)
		if err := d.awaitNone(ctx); err != nil {
			return nil, err
		}
	}
	return times, nil
}
