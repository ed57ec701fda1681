package bench

import (
	"context"
	"fmt"
)

// benchMemory measures the peak memory of a daemon while a batch runs, for batches of several
// sizes: in a process that also takes the upload, and in one that only runs the batch.
func benchMemory(ctx context.Context, l *environment) ([]figure, error) {
	up, err := l.startUpstream(ctx)
	if err != nil {
		return nil, err
	}
	defer up.kill()
	var figures []figure
	// The sizes differ by a factor of eight. The times of garbage collections alone change the peak
	// by a quarter from run to run.
	growth := figure{What: "Peak memory, largest batch against smallest", Goal: atMost(1.5)}
	for i, lines := range l.sizes.memoryLines {
		size := fmt.Sprintf("%d MB", lines*lineBytes/1_000_000)
		path, err := l.writeBatchFile("memory.jsonl", lines, lineBytes)
		if err != nil {
			return nil, err
		}
		both := figure{What: "Peak memory, " + size + ", upload and batch",
			Unit: "MiB", Goal: atMost(128)}
		alone := figure{What: "Peak memory, " + size + ", batch alone",
			Unit: "MiB", Goal: atMost(128)}
		for run := range l.runs {
			l.logf("memory with %s: run %d of %d", size, run+1, l.runs)
			withUpload, without, err := peaks(ctx, l, up, path, lines)
			if err != nil {
				return nil, err
			}
			both.Values, alone.Values = append(both.Values, withUpload),
				append(alone.Values, without)
		}
		switch i {
		case 0:
			growth.Values = both.Values
		case len(l.sizes.memoryLines) - 1:
			growth.Detail = fmt.Sprintf("%s against %s MiB", number(median(both.Values)),
				number(median(growth.Values)))
			growth.Values = []float64{median(both.Values) / median(growth.Values)}
		}
		figures = append(figures, both, alone)
	}
	return append(figures, growth), nil
}

// peaks runs the file as a batch twice, in two processes on the same data.
func peaks(
	ctx context.Context, l *environment, up *upstream, path string, lines int,
) (withUpload, without float64, err error) {
	data, err := l.newDir("memory")
	if err != nil {
		return 0, 0, err
	}
	var file string
	run := func(upload bool) (float64, error) {
		d, err := l.startDaemon(ctx, data, up.url, "flowcontrol.policy=fixed",
			"flowcontrol.fixed.per_runner=100",
			fmt.Sprintf("api.max_batch_file_bytes=%d", 1<<30), fmt.Sprintf("api.max_batch_lines=%d",
				lines))
		if err != nil {
			return 0, err
		}
		defer d.kill()
		if upload {
			if file, err = d.upload(ctx, path); err != nil {
				return 0, err
			}
		}
		if err := d.complete(ctx, file); err != nil {
			return 0, err
		}
		peak, err := d.peakMemory()
		if err == nil {
			err = d.profileHeap(ctx, l, fmt.Sprintf("memory-%d-%v", lines, upload))
		}
		if err != nil {
			return 0, err
		}
		return mebibytes(peak), d.stop()
	}
	if withUpload, err = run(true); err != nil {
		return 0, 0, err
	}
	without, err = run(false)
	return withUpload, without, err
}
