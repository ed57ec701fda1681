package bench

import (
	"context"
	"fmt"
	"time"
)

// benchSmall measures many small batches, each with a file of its own, with the default
// configuration.
func benchSmall(ctx context.Context, l *environment) ([]figure, error) {
	return smallFigures(ctx, l, "")
}

// smallFigures measures daemons with the settings.
func smallFigures(
	ctx context.Context, l *environment, on string, settings ...string,
) ([]figure, error) {
	up, err := l.startUpstream(ctx)
	if err != nil {
		return nil, err
	}
	defer up.kill()
	what := fmt.Sprintf("%d batches of %d lines, first create to last completed%s",
		l.sizes.smallBatches, l.sizes.smallLines, on)
	f := figure{What: what, Unit: "s", Goal: atMost(5)}
	for i := range l.runs {
		l.logf("small batches: run %d of %d", i+1, l.runs)
		took, err := smallBatches(ctx, l, up, settings)
		if err != nil {
			return nil, err
		}
		f.Values = append(f.Values, took.Seconds())
	}
	return []figure{f}, nil
}

func smallBatches(
	ctx context.Context, l *environment, up *upstream, settings []string,
) (time.Duration, error) {
	data, err := l.newDir("small")
	if err != nil {
		return 0, err
	}
	d, err := l.startDaemon(ctx, data, up.url,
		append([]string{"flowcontrol.policy=fixed"}, settings...)...)
	if err != nil {
		return 0, err
	}
	defer d.kill()
	path, err := l.writeBatchFile("small.jsonl", l.sizes.smallLines, dispatchLineBytes)
	if err != nil {
		return 0, err
	}
	files := make([]string, l.sizes.smallBatches)
	for i := range files {
		if files[i], err = d.upload(ctx, path); err != nil {
			return 0, err
		}
	}
	if err := up.clear(ctx); err != nil {
		return 0, err
	}
	begun := time.Now()
	for _, file := range files {
		if _, err := d.create(ctx, file); err != nil {
			return 0, err
		}
	}
	if err := d.awaitNone(ctx); err != nil {
		return 0, err
	}
	took := time.Since(begun)
	seen, err := up.ledger(ctx)
	if want := int64(l.sizes.smallBatches * l.sizes.smallLines); err == nil && seen.Count != want {
		err = fmt.Errorf("the upstream saw %d requests instead of %d", seen.Count, want)
	}
	return took, err
}

// awaitNone returns when all batches have ended.
func (d *daemon) awaitNone(ctx context.Context) error {
	for {
		var page struct{ Data []struct{ ID string } }
		const running = "/v1/batches?limit=1&status=validating,in_progress,finalizing,cancelling"
		err := ask(ctx, "GET", d.url+running, nil, &page)
		if err != nil || len(page.Data) == 0 {
			return err
		}
		if err := pause(ctx, pollInterval); err != nil {
			return fmt.Errorf("await the end of all batches: %w\n%s", err, tail(d.log))
		}
	}
}
