package app_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/apptest"
)

// reloading is a daemon whose configuration a test changes.
type reloading struct {
	*app.App
	t      *testing.T
	file   string
	more   string // that every version of the file has
	runner string
	hangup chan os.Signal
	log    *syncBuffer
	level  *slog.LevelVar
}

// base is what every version of the file has.
func (d *reloading) base(data string) string {
	return "listen: 127.0.0.1:0\nadmin_listen: 127.0.0.1:0\nnode: test\ndata: " + data +
		"\nshutdown: {drain: 100ms}\nflowcontrol: {policy: fixed}\n" + d.more
}

func startReloading(t *testing.T) *reloading {
	t.Helper()
	return startReloadingWith(t, "")
}

// startReloadingWith starts a daemon with more in its file, in which {dir} is a new directory.
func startReloadingWith(t *testing.T, more string) *reloading {
	t.Helper()
	dir := t.TempDir()
	d := &reloading{t: t, file: filepath.Join(dir, "tidefill.yaml"), log: &syncBuffer{},
		runner: apptest.StartRunner(t, nil), hangup: make(chan os.Signal),
		level: new(slog.LevelVar)}
	d.more = strings.ReplaceAll(more, "{dir}", dir)
	d.write("")
	source := &config.File{Path: d.file}
	cfg, err := source.Load()
	if err != nil {
		t.Fatal(err)
	}
	d.App, _ = apptest.Start(t, cfg, app.Options{ConfigFile: d.file, Reload: d.hangup,
		Load: source.Reload, Locate: source.Locate, LogLevel: d.level,
		Logger: slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), d.log), nil))})
	return d
}

// write replaces the file by the base and more.
func (d *reloading) write(more string) { d.overwrite(d.base(filepath.Dir(d.file)) + more) }

func (d *reloading) overwrite(content string) {
	d.t.Helper()
	if !strings.Contains(content, "upstreams:") && strings.Contains(content, "node:") {
		content += "upstreams: [{url: '" + d.runner + "'}]\n"
	}
	if err := os.WriteFile(d.file+".new", []byte(content), 0o600); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Rename(d.file+".new", d.file); err != nil {
		d.t.Fatal(err)
	}
}

// page reads a page of the admin address.
func (d *reloading) page(path string) string {
	d.t.Helper()
	answer, err := http.Get(d.AdminURL() + path)
	if err != nil {
		d.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		d.t.Fatalf("%s: status %d: %v", path, answer.StatusCode, err)
	}
	return string(text)
}

// await waits until a page contains a text.
func (d *reloading) await(path, text string) {
	d.t.Helper()
	d.until(func() bool { return strings.Contains(d.page(path), text) }, func() string {
		return fmt.Sprintf("%s never has %q:\n%s", path, text, d.page(path))
	})
}

// until waits for a condition, and fails with what fault says if it does not come.
func (d *reloading) until(is func() bool, fault func() string) {
	d.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			d.t.Fatal(fault())
		}
	}
}

const successful = "\ntidefill_config_last_reload_successful "

type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// hup has the file read now. The App has handled a signal when it takes the next one.
func (d *reloading) hup() {
	d.hangup <- syscall.SIGHUP
	d.hangup <- syscall.SIGHUP
}

func TestChangedFileIsApplied(t *testing.T) {
	d := startReloading(t)
	second := apptest.StartRunner(t, nil)
	d.await("/metrics", successful+"1")
	d.write("log: {level: debug}\napi: {max_batch_lines: 7}\nupstreams: [{url: '" + second +
		"', headers: {X-Key: s3cr3t}}]\n")
	d.await("/admin/config", "max_batch_lines: 7") // without a signal
	if d.level.Level() != slog.LevelDebug {
		t.Errorf("the log level is %v, want debug", d.level.Level())
	}
	page := d.page("/admin/config")
	if !strings.Contains(page, second) || strings.Contains(page, d.runner) ||
		strings.Contains(page, "s3cr3t") {
		t.Errorf("the page shows another configuration, or a secret:\n%s", page)
	}
	if text := d.page("/admin/config?format=json"); !strings.Contains(text, `"max_batch_lines":7`) {
		t.Errorf("JSON has no max_batch_lines:\n%s", text)
	}
	log := d.log.String()
	if !strings.Contains(log, "api.max_batch_lines: 50000 -> 7") ||
		strings.Contains(log, "s3cr3t") {
		t.Errorf("the log does not name the change, or has a secret:\n%s", log)
	}
}

func TestLinkedFileIsSwapped(t *testing.T) {
	d := startReloading(t)
	dir := filepath.Dir(d.file) // as Kubernetes mounts a ConfigMap: file -> ..data/file -> ..1/file
	content, err := os.ReadFile(d.file)
	if err != nil {
		t.Fatal(err)
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, more := range []string{"", "api: {max_requests: 77}\n"} {
		version := filepath.Join(dir, []string{"..1", "..2"}[i])
		do(os.Mkdir(version, 0o700))
		do(os.WriteFile(filepath.Join(version, "tidefill.yaml"), append(content, more...), 0o600))
		do(os.Symlink(version, filepath.Join(dir, "..data_tmp")))
		do(os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
		if i == 0 {
			do(os.Symlink(filepath.Join("..data", "tidefill.yaml"), d.file+".link"))
			do(os.Rename(d.file+".link", d.file))
			d.hup()
		}
	}
	d.await("/admin/config", "max_requests: 77")
}

func TestRefusedFileChangesNothing(t *testing.T) {
	d := startReloading(t)
	base := d.base(filepath.Dir(d.file))
	for name, c := range map[string]struct{ content, want string }{
		"a value out of range": {base + "api: {max_requests: 0}\n",
			d.file + ":7: api.max_requests is 0; set it above 0"},
		"an unknown key": {base + "api: {max_request: 1}\n", d.file + ":7: unknown key"},
		"no YAML":        {base + "api: {max_requests\n", d.file + ":7: did not find"},
		"several faults": {base + "api: {max_batch_lines: 0, max_requests: 0}\n",
			"set it above 0; " + d.file + ":7: api.max_requests"},
		"an empty file": {"# nothing\n", d.file + " has no key"},
		"a policy":      {base + "flow: x\n", "did you mean"},
		"a key's variable": {base + "upstreams: [{url: 'http://a', api_key_env: TIDEFILL_NO}]\n",
			d.file + ":7: upstreams[0].api_key_env: upstream a: the environment variable " +
				"TIDEFILL_NO, named by api_key_env, is empty"},
		"a keys file": {base + "auth: {keys_file: /nowhere}\n",
			d.file + ":7: auth.keys_file: stat /nowhere: "},
	} {
		d.write("")
		d.hup()
		d.await("/metrics", successful+"1")
		d.overwrite(c.content)
		d.hup()
		d.await("/metrics", successful+"0")
		if page := d.page("/admin/config"); !strings.Contains(page, "max_requests: 256") {
			t.Errorf("%s: the configuration has changed:\n%s", name, page)
		}
		rows := strings.Split(strings.TrimSpace(d.log.String()), "\n")
		last := rows[len(rows)-1]
		if !strings.Contains(last, "level=ERROR") || !strings.Contains(last, c.want) {
			t.Errorf("%s: the log ends with\n%s\nwant %s", name, last, c.want)
		}
	}
	if err := os.Remove(d.file); err != nil {
		t.Fatal(err)
	}
	d.hup()
	d.await("/metrics", successful+"0")
	d.write("")
	d.await("/metrics", successful+"1") // without a signal, when it is back
}

func TestWhatNeedsARestartIsNamedAndTheRestApplied(t *testing.T) {
	d := startReloading(t)
	d.write("http: {max_connections: 9}\napi: {max_requests: 3}\n")
	d.hup()
	page := d.page("/admin/config")
	for _, want := range []string{"# Restart to apply: http.max_connections: 1024 -> 9\n",
		"max_connections: 1024\n", "max_requests: 3\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
	d.await("/metrics", "tidefill_config_changes_pending_restart 1")
	if log := d.log.String(); !strings.Contains(log, "restart to apply") ||
		!strings.Contains(log, "http.max_connections: 1024 -> 9") {
		t.Errorf("the log does not name what needs a restart:\n%s", log)
	}
	d.write("api: {max_requests: 3}\n")
	d.hup()
	d.await("/metrics", "tidefill_config_changes_pending_restart 0")
}

// While a file is being written, it is not read. Nobody waits for the writer.
func TestStormOfWritesIsHarmless(t *testing.T) {
	d := startReloading(t)
	whole := d.base(filepath.Dir(d.file)) + "upstreams: [{url: '" + d.runner + "'}]\n"
	for i := range 250 {
		half := whole[:i*7%len(whole)]
		if err := os.WriteFile(d.file, []byte(half), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := os.WriteFile(d.file, []byte(whole+"api: {max_requests: 4}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.await("/admin/config", "max_requests: 4")
	d.await("/metrics", successful+"1")
	if log := d.log.String(); strings.Contains(log, "level=ERROR") {
		t.Errorf("a half-written file was read:\n%s", log)
	}
}

func TestKeysCannotBeSwitchedOff(t *testing.T) {
	d := startReloading(t)
	keys := filepath.Join(t.TempDir(), "keys.yaml")
	if err := os.WriteFile(keys, []byte("keys: [{hash: 'sha256:"+strings.Repeat("ab", 32)+"'}]"),
		0o600); err != nil {
		t.Fatal(err)
	}
	d.write("auth: {keys_file: " + keys + "}\n")
	d.hup()
	if status := get(t, d.URL()+"/v1/models"); status != http.StatusUnauthorized {
		t.Errorf("status %d without a key after keys were added, want 401", status)
	}
	d.write("")
	d.hup()
	if status := get(t, d.URL()+"/v1/models"); status != http.StatusUnauthorized {
		t.Errorf("status %d without a key after keys were removed, want 401", status)
	}
	if log := d.log.String(); !strings.Contains(log, "without it there would be no API key") {
		t.Errorf("the log does not say why:\n%s", log)
	}
}

// A policy that reads metrics gets readings although the one at the start used none. Capabilities
// are read under both.
func TestReadingsBeginWithAPolicyThatUsesThem(t *testing.T) {
	d := startReloading(t)
	const (
		capabilities = `tidefill_reading_timestamp_seconds{source="capabilities"`
		metrics      = `tidefill_reading_timestamp_seconds{source="metrics"`
	)
	d.await("/metrics", capabilities)
	if strings.Contains(d.page("/metrics"), metrics) {
		t.Error("metrics are read under the policy fixed")
	}
	d.write("")
	content, err := os.ReadFile(d.file)
	if err != nil {
		t.Fatal(err)
	}
	d.overwrite(strings.Replace(string(content), "policy: fixed", "policy: headroom", 1))
	d.hup()
	d.await("/metrics", metrics)
	d.write("")
	d.hup()
	deadline := time.Now().Add(30 * time.Second)
	for strings.Contains(d.page("/metrics"), metrics) {
		if time.Now().After(deadline) {
			t.Fatal("readings go on under the policy fixed")
		}
		time.Sleep(5 * time.Millisecond)
	}
	d.await("/metrics", capabilities)
}

// A runner that comes and goes again does not interrupt the readings of the others.
func TestOtherRunnersAreReadOn(t *testing.T) {
	d := startReloadingWith(t, "pools: [{name: a, models: [m], max: 2}]\n")
	guest := apptest.StartRunner(t, nil)
	row := func(url string) string {
		return `tidefill_reading_timestamp_seconds{source="metrics",target="` +
			strings.TrimPrefix(url, "http://") + `"}`
	}
	const known = `msg="reading a runner's metrics" component=telemetry runner=`
	d.await("/metrics", row(d.runner))
	both := "upstreams: [{url: '" + d.runner + "', pool: a}, {url: '" + guest + "', pool: a}]\n"
	for range 2 {
		d.write(both)
		d.hangup <- syscall.SIGHUP
		d.await("/metrics", row(guest))
		d.write("upstreams: [{url: '" + d.runner + "', pool: a}]\n")
		d.hangup <- syscall.SIGHUP
		deadline := time.Now().Add(30 * time.Second)
		for strings.Contains(d.page("/metrics"), row(guest)) {
			if time.Now().After(deadline) {
				t.Fatal("the runner that went is still shown")
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	if n := strings.Count(d.log.String(), known+strings.TrimPrefix(d.runner, "http://")); n != 1 {
		t.Errorf("the readings of the runner that stayed began %d times", n)
	}
}

// A file of signals that changes is read again; one that can't be used changes nothing.
func TestSignalsFileIsReadAgain(t *testing.T) {
	builtIn, err := os.ReadFile("../telemetry/signals.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := startReloadingWith(t, "pools: [{name: a, models: [m], max: 2}]\n")
	file := filepath.Join(filepath.Dir(d.file), "signals.yaml")
	write := func(kvUsed string) {
		t.Helper()
		text := strings.Replace(string(builtIn), "kv_used: [kv_cache_usage_perc", kvUsed, 1)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := "telemetry: {signals: '" + file + "'}\nupstreams: [{url: '" + d.runner +
		"', pool: a}]\n"
	readFrom := func(metric string) string {
		return `tidefill_signal_resolved{metric="vllm:` + metric + `",runner="` +
			strings.TrimPrefix(d.runner, "http://") + `",signal="kv_used"} 1`
	}
	write("kv_used: [num_requests_waiting")
	d.write(read)
	d.hangup <- syscall.SIGHUP
	d.await("/metrics", readFrom("num_requests_waiting"))
	write("kv_used: [num_requests_running")
	d.await("/metrics", readFrom("num_requests_running"))
	write("kv_used: [kv_cache_usage_perc{")
	deadline := time.Now().Add(30 * time.Second)
	for !strings.Contains(d.log.String(), "signals file refused") {
		if time.Now().After(deadline) {
			t.Fatalf("the log does not say that it is refused:\n%s", d.log)
		}
		time.Sleep(5 * time.Millisecond)
	}
	d.await("/metrics", readFrom("num_requests_running"))
}
