package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidefill/tidefill/internal/testservers"
)

// daemon is a `tidefill serve` on a data directory.
type daemon struct {
	*process
	url, admin string
	log        string // path
}

// startDaemon starts a daemon and waits until it is ready. upstreams are URLs between spaces.
// Settings are key=value, as for --set.
func (l *environment) startDaemon(
	ctx context.Context, data, upstreams string, settings ...string,
) (*daemon, error) {
	listen, err := testservers.FreeAddress()
	if err != nil {
		return nil, err
	}
	admin, err := testservers.FreeAddress()
	if err != nil {
		return nil, err
	}
	args := []string{"serve", "--listen", listen, "--admin-listen", admin, "--data", data, "--node",
		"bench",
		"--set", "api.unknown_models=wait"} // half of the waiting batches need an absent model
	for url := range strings.FieldsSeq(upstreams) {
		args = append(args, "--upstream", url)
	}
	for _, setting := range settings {
		args = append(args, "--set", setting)
	}
	d := &daemon{url: "http://" + listen, admin: "http://" + admin,
		log: filepath.Join(l.dir, "daemon.log")}
	log, err := os.Create(d.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, l.binary, args...)
	cmd.Stderr = log
	if d.process, err = start(cmd); err != nil {
		return nil, fmt.Errorf("start daemon: %w", err)
	}
	if err := d.awaitReady(ctx); err != nil {
		d.kill()
		return nil, err
	}
	return d, nil
}

// awaitReady polls every millisecond, so that the time until readiness can be measured.
func (d *daemon) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		err := ask(ctx, "GET", d.admin+"/readyz", nil, nil)
		if err == nil {
			return nil
		}
		if pause(ctx, time.Millisecond) != nil {
			return fmt.Errorf("wait until the daemon is ready: %w\n%s", err, tail(d.log))
		}
	}
}

// stop ends the daemon by an interrupt, so that all its data is on disk.
func (d *daemon) stop() error {
	if err := d.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	if err := d.cmd.Wait(); err != nil {
		return fmt.Errorf("stop daemon: %w\n%s", err, tail(d.log))
	}
	return nil
}

// tail returns the end of a file, for messages.
func tail(path string) string {
	const most = 4 << 10
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}

// upload returns the id of the uploaded file.
func (d *daemon) upload(ctx context.Context, path string) (string, error) {
	var file struct{ ID string }
	if err := sendFile(ctx, d.url+"/v1/files", path, &file); err != nil {
		return "", fmt.Errorf("upload %s: %w", filepath.Base(path), err)
	}
	return file.ID, nil
}

// create returns the id of a new batch of the file.
func (d *daemon) create(ctx context.Context, file string) (string, error) {
	var batch struct{ ID string }
	err := ask(ctx, "POST", d.url+"/v1/batches", map[string]string{
		"input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h",
	}, &batch)
	return batch.ID, err
}

// pollInterval is the interval of polling, a hundredth of most figures.
const pollInterval = 10 * time.Millisecond

// await returns when the batch has the status end. If end is completed, all lines must have
// completed.
func (d *daemon) await(ctx context.Context, id, end string) error {
	var b struct {
		Status string
		Counts struct{ Total, Completed int } `json:"request_counts"`
	}
	for {
		if err := ask(ctx, "GET", d.url+"/v1/batches/"+id, nil, &b); err != nil {
			return err
		}
		switch b.Status {
		case end:
			if end == "completed" && b.Counts.Completed != b.Counts.Total {
				return fmt.Errorf("batch %s completed %d of %d lines", id, b.Counts.Completed,
					b.Counts.Total)
			}
			return nil
		case "completed", "failed", "expired", "cancelled":
			return fmt.Errorf("batch %s is %s, not %s\n%s", id, b.Status, end, tail(d.log))
		}
		if err := pause(ctx, pollInterval); err != nil {
			return fmt.Errorf("await the end of batch %s, which is %s: %w\n%s", id, b.Status, err,
				tail(d.log))
		}
	}
}

// complete runs a batch of the file from creation to completion.
func (d *daemon) complete(ctx context.Context, file string) error {
	id, err := d.create(ctx, file)
	if err != nil {
		return err
	}
	return d.await(ctx, id, "completed")
}
