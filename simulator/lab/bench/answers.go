package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// benchAnswers measures the peak memory of a daemon while upstreams send more than fits into
// memory, in a new process for each kind. Batches must end, and small answers must pass slow ones.
func benchAnswers(ctx context.Context, l *environment) ([]figure, error) {
	up, err := l.startHostile(ctx)
	if err != nil {
		return nil, err
	}
	defer up.kill()
	n, size := l.sizes.largeAnswers, l.sizes.largeBytes
	var figures []figure
	for _, c := range []struct {
		what string
		hostility
	}{
		{fmt.Sprintf("%d embeddings of %d MB at once", n, size/1_000_000),
			hostility{kind: "large", size: size, succeeds: true}},
		{fmt.Sprintf("%d answers that drip, small ones beside them", n),
			hostility{kind: "drip", size: size / 20, succeeds: true, smalls: 10 * n}},
		{fmt.Sprintf("%d answers without end", n), hostility{kind: "endless", size: size}},
		{fmt.Sprintf("%d headers without end", n), hostility{kind: "header", size: size}},
		{fmt.Sprintf("%d errors of %d MB", n, size/1_000_000),
			hostility{kind: "error", size: size}},
	} {
		f := figure{What: "Peak memory, " + c.what, Unit: "MiB", Goal: atMost(128)}
		for run := range l.runs {
			l.logf("answers, %s: run %d of %d", c.kind, run+1, l.runs)
			peak, err := l.peakWith(ctx, up, c.hostility)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.kind, err)
			}
			f.Values = append(f.Values, peak)
		}
		figures = append(figures, f)
	}
	return figures, nil
}

// hostility describes how lines are answered.
type hostility struct {
	kind     string
	size     int
	succeeds bool
	smalls   int // number of normal lines beside them
}

// peakWith runs a batch of lines that are answered as h says, and normal ones beside them, in a new
// daemon.
func (l *environment) peakWith(ctx context.Context, up *upstream, h hostility) (float64, error) {
	data, err := l.newDir("answers")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(data)
	d, err := l.startDaemon(ctx, data, up.url, "flowcontrol.policy=fixed",
		fmt.Sprintf("flowcontrol.fixed.per_runner=%d", l.sizes.largeAnswers+4),
		"dispatch.retry.attempts=1", "dispatch.retry.tuning.deaths=1")
	if err != nil {
		return 0, err
	}
	defer d.kill()
	hostile, err := d.embed(ctx, l, h.kind, h.size, l.sizes.largeAnswers)
	if err != nil {
		return 0, err
	}
	if h.smalls > 0 {
		begun := time.Now()
		small, err := d.embed(ctx, l, "small", 1, h.smalls)
		if err == nil {
			err = d.await(ctx, small, "completed")
		}
		if err != nil {
			return 0, err
		}
		l.logf("%d small answers passed in %v", h.smalls, time.Since(begun).Round(time.Millisecond))
	}
	if err := d.ended(ctx, hostile, h.succeeds); err != nil {
		return 0, err
	}
	if err := d.drainResults(ctx, hostile); err != nil {
		return 0, err
	}
	peak, err := d.peakMemory()
	if err == nil {
		err = d.profileHeap(ctx, l, "answers-"+h.kind)
	}
	if err != nil {
		return 0, err
	}
	return mebibytes(peak), d.stop()
}

// embed starts a batch of embeddings that the upstream answers as kind says.
func (d *daemon) embed(
	ctx context.Context, l *environment, kind string, size, lines int,
) (id string, err error) {
	path := filepath.Join(l.dir, "embed-"+kind+".jsonl")
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	for i := range lines {
		fmt.Fprintf(f, `{"custom_id":"%s-%d","method":"POST","url":"/v1/embeddings",`+
			`"body":{"model":%q,"input":"%s %d"}}`+"\n", kind, i, model, kind, size)
	}
	if err := f.Close(); err != nil {
		return "", err
	}
	file, err := d.upload(ctx, path)
	if err != nil {
		return "", err
	}
	var batch struct{ ID string }
	err = ask(ctx, "POST", d.url+"/v1/batches", map[string]string{
		"input_file_id": file, "endpoint": "/v1/embeddings", "completion_window": "24h",
	}, &batch)
	return batch.ID, err
}

// ended waits until all lines of a batch have succeeded, or all have failed.
func (d *daemon) ended(ctx context.Context, id string, succeed bool) error {
	if succeed {
		return d.await(ctx, id, "completed")
	}
	var b struct {
		Status string
		Counts struct{ Total, Completed, Failed int } `json:"request_counts"`
	}
	for {
		if err := ask(ctx, "GET", d.url+"/v1/batches/"+id, nil, &b); err != nil {
			return err
		}
		if b.Status == "completed" {
			if b.Counts.Failed != b.Counts.Total {
				return fmt.Errorf("batch %s: %d of %d lines failed, not all", id, b.Counts.Failed,
					b.Counts.Total)
			}
			return nil
		}
		if err := pause(ctx, pollInterval); err != nil {
			return fmt.Errorf("await the end of batch %s: %w\n%s", id, err, tail(d.log))
		}
	}
}

// drainResults reads the results of a batch as a client that follows it.
func (d *daemon) drainResults(ctx context.Context, id string) error {
	r, err := http.NewRequestWithContext(ctx, "GET", d.url+"/v1/batches/"+id+"/results", nil)
	if err != nil {
		return err
	}
	response, err := httpClient.Do(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close())
}
