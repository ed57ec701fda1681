//go:build unix

package app_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/apptest"
)

// awaitLog waits until the log contains a text.
func (d *reloading) awaitLog(text string) {
	d.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !strings.Contains(d.log.String(), text) {
		if time.Now().After(deadline) {
			d.t.Fatalf("the log never has %q:\n%s", text, d.log)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (d *reloading) pipe(path string) {
	d.t.Helper()
	if err := syscall.Mkfifo(path+".pipe", 0o600); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Rename(path+".pipe", path); err != nil {
		d.t.Fatal(err)
	}
}

// A pipe is refused, for reading it blocks. What was refused and is good again is reported, also if
// nothing of it has changed.
func TestPipesAreRefused(t *testing.T) {
	d := startReloading(t)
	d.write("")
	d.hup()
	d.pipe(d.file)
	d.hup()
	d.await("/metrics", successful+"0")
	d.awaitLog(d.file + " is a pipe; put a regular file there")
	d.write("")
	d.awaitLog("the configuration that was refused can be used now") // without a signal
	d.await("/metrics", successful+"1")

	keys := filepath.Join(filepath.Dir(d.file), "keys.yaml")
	good := "keys: [{hash: " + api.HashKey("a key") + "}]\n"
	if err := os.WriteFile(keys, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	d.write("auth: {keys_file: " + keys + "}\n")
	d.hup()
	d.pipe(keys)
	d.hup()
	d.await("/metrics", successful+"0")
	d.awaitLog(keys + " is a pipe")
	if err := os.Rename(keys, keys+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(keys, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	d.await("/metrics", successful+"1")
}

// A refused keys or signals file shows in the gauge.
func TestOtherFilesShowInTheGauge(t *testing.T) {
	d := startReloading(t)
	keys := filepath.Join(filepath.Dir(d.file), "keys.yaml")
	signals := filepath.Join(filepath.Dir(d.file), "signals.yaml")
	builtIn, err := os.ReadFile("../telemetry/signals.yaml")
	if err != nil {
		t.Fatal(err)
	}
	good := map[string]string{signals: string(builtIn),
		keys: "keys: [{hash: " + api.HashKey("a key") + "}]\n"}
	put := func(file, content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(keys, good[keys])
	put(signals, good[signals])
	d.write("auth: {keys_file: " + keys + "}\ntelemetry: {signals: " + signals + "}\n")
	d.hup()
	d.await("/metrics", successful+"1")
	for file, content := range good {
		put(file, "x: [\n")
		d.await("/metrics", successful+"0")
		put(file, content)
		d.await("/metrics", successful+"1")
	}
	put(keys, "x: [\n")
	d.await("/metrics", successful+"0")
	put(keys, good[keys])
	d.write("auth: {keys_file: " + keys + "}\n") // and another one is not used any more
	put(signals, "x: [\n")
	d.await("/metrics", successful+"1")
}

// A read that blocks for ever does not keep the daemon from ending.
func TestBlockedReadDoesNotKeepTheDaemon(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tidefill.yaml")
	if err := os.WriteFile(file, []byte("node: a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	blocked, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	_, stop := apptest.Start(t, apptest.Config(t.TempDir(), apptest.StartRunner(t, nil)),
		app.Options{ConfigFile: file, Load: func() (config.Config, error) {
			close(blocked)
			<-release
			return config.Config{}, errors.New("released")
		}})
	<-blocked
	stopped := make(chan struct{})
	go func() {
		stop()
		close(stopped)
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	select {
	case <-stopped:
	case <-ctx.Done():
		t.Fatal("the daemon does not end")
	}
}

// What only the daemon finds has its place in the file too.
func TestFaultsOfOtherFilesHaveAPlace(t *testing.T) {
	d := startReloadingWith(t, "pools: [{name: a, models: [m], max: 2}]\n")
	const prometheus = "telemetry:\n  prometheus:\n    url: https://127.0.0.1:1\n    ttft: [a]\n"
	for more, want := range map[string]string{
		"    token_file: /nowhere\n":       ":12: telemetry.prometheus.token_file: open ",
		"    tls: {ca_file: /nowhere}\n":   ":12: telemetry.prometheus.tls.ca_file: open ",
		"    token_env: TIDEFILL_ABSENT\n": ":12: telemetry.prometheus.token_env: the environment",
		"  signals: /nowhere\n":            ":12: telemetry.signals: read signal map: ",
	} {
		d.write(prometheus + more)
		d.hup()
		d.awaitLog(d.file + want)
	}
}

// A file that was refused because of another is tried again, without a signal, and the log has the
// reason once.
func TestRefusedFileIsTriedAgain(t *testing.T) {
	app.ShortenRetries(t, 100*time.Millisecond)
	d := startReloadingWith(t, "pools: [{name: a, models: [m], max: 2}]\n")
	token := filepath.Join(filepath.Dir(d.file), "token")
	d.write("telemetry: {prometheus: {url: 'http://127.0.0.1:1', ttft: [a], token_file: '" +
		token + "'}}\napi: {max_requests: 9}\n")
	d.await("/metrics", successful+"0")
	time.Sleep(3 * time.Second) // for retries that find the same
	if n := strings.Count(d.log.String(), "configuration refused"); n != 1 {
		t.Errorf("the log has the reason %d times, want once", n)
	}
	if err := os.WriteFile(token, []byte("a token"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.await("/admin/config", "max_requests: 9")
	d.await("/metrics", successful+"1")
}

// A pool is added and removed with the upstream that names it, and batches use it meanwhile.
func TestPoolsAreAddedAndRemovedByAReload(t *testing.T) {
	d := startReloading(t)
	guest := apptest.StartRunner(t, nil)
	const own, wanted = "upstreams:\n- {url: '%s', models: [n]}\n",
		`tidefill_scaling_wanted_replicas{pool="p"} 1`
	d.write(fmt.Sprintf(own, d.runner) + "- {name: guest, pool: p, url: '" + guest + "'}\n" +
		"pools: [{name: p, models: [m], min: 1, max: 2}]\n")
	d.hup()
	d.await("/metrics", wanted)
	d.await("/metrics", "tidefill_config_changes_pending_restart 0")
	c, batch := apptest.Submit(t, d.App, 5)
	d.until(func() bool {
		var err error
		if batch, err = c.Batch(t.Context(), batch.ID); err != nil {
			t.Fatal(err)
		}
		return batch.Status == "completed" && batch.Counts.Completed == 5
	}, func() string { return fmt.Sprintf("the batch of the pool's model is %+v", batch) })
	d.write(fmt.Sprintf(own, d.runner))
	d.hup()
	d.until(func() bool { return !strings.Contains(d.page("/metrics"), wanted) }, func() string {
		return "the pool is still there:\n" + d.page("/metrics")
	})
	d.await("/metrics", successful+"1")
}

// What can't be applied without something that needs a restart changes nothing.
func TestChangesWaitForWhatNeedsARestart(t *testing.T) {
	d := startReloadingWith(t, "scaler: {listen: 127.0.0.1:0}\n"+
		"pools: [{name: p, models: [m], max: 2}]\n")
	more := d.more
	d.more = ""
	d.write("api: {max_requests: 9}\n")
	d.hup() // a scaler can't be without pools, and is served until a restart
	d.await("/metrics", successful+"0")
	d.awaitLog("needs a restart (scaler.listen)")
	d.more = more
}
