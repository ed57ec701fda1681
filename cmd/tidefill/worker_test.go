package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/internal/testservers"
	"github.com/tidefill/tidefill/internal/testservers/redis"
)

// program runs the program as a process of its own until the test ends or kills it.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asMain+"=1")
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kill(cmd) })
	return cmd
}

func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := testservers.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func awaitOK(t *testing.T, url string) {
	t.Helper()
	awaitThat(t, url+" is ready", func() bool {
		response, err := http.Get(url)
		if err == nil {
			response.Body.Close()
		}
		return err == nil && response.StatusCode == http.StatusOK
	})
}

func awaitThat(t *testing.T, what string, is func() bool) {
	t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for end := time.After(time.Minute); !is(); {
		select {
		case <-end:
			t.Fatal("waited a minute until " + what)
		case <-again.C:
		}
	}
}

// asyncPool is a daemon whose pool sends through a queue, as processes. It can't reach the engine.
type asyncPool struct {
	t      *testing.T
	redis  *redis.Server
	engine string
	config string
	admin  string
	daemon *exec.Cmd
}

func startAsyncPool(t *testing.T) *asyncPool {
	engine, listen := freeAddress(t), freeAddress(t)
	p := &asyncPool{t: t, redis: redis.Start(t), admin: freeAddress(t), engine: "http://" + engine}
	program(t, "runner", "emulate", "--profile", "llama-70b-a100", "--model", "m", "--listen",
		engine)
	awaitOK(t, p.engine+"/v1/models")
	t.Setenv("TIDEFILL_SERVER", "http://"+listen)
	p.config = writeFile(t, "tidefill.yaml", fmt.Sprintf(`
listen: %s
admin_listen: %s
data: %s
flowcontrol: {policy: fixed, fixed: {per_runner: 8}}
async: {url: "redis://%s"}
pools: [{name: p, models: [m], max: 1, send: async}]
upstreams:
  - {name: gpu-1, url: "http://127.0.0.1:9", pool: p, metrics: none}
`, listen, p.admin, t.TempDir(), p.redis.Addr))
	p.start()
	return p
}

func (p *asyncPool) start() {
	p.daemon = program(p.t, "serve", "--config", p.config)
	awaitOK(p.t, "http://"+p.admin+"/healthz")
}

func (p *asyncPool) work() *exec.Cmd {
	listen := freeAddress(p.t)
	worker := program(p.t, "worker", "--redis", "redis://"+p.redis.Addr, "--runner", "gpu-1",
		"--engine", p.engine, "--listen", listen, "--drain", "1s")
	awaitOK(p.t, "http://"+listen+"/healthz")
	return worker
}

// Each side is killed, suspended or loses its memory while a batch runs: each line has one result.
func TestAsyncPoolUnderFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	const lines = 1500
	p := startAsyncPool(t)
	worker := p.work()
	input := writeFile(t, "in.jsonl", apptest.BatchFile(lines))
	id := idOf(t, must(t, exitOK, "batch", "submit", input, "--json").out)
	progress := func() {
		t.Helper()
		completed := func() int {
			var b struct {
				Counts struct{ Completed int } `json:"request_counts"`
			}
			text := must(t, exitOK, "batch", "get", id, "--json").out
			if err := json.Unmarshal([]byte(text), &b); err != nil {
				t.Fatal(err)
			}
			return b.Counts.Completed
		}
		before := completed()
		awaitThat(t, "more lines are done", func() bool { return completed() >= before+50 })
	}
	alive := func(n int) {
		t.Helper()
		awaitThat(t, fmt.Sprintf("%d workers count as alive", n), func() bool {
			return p.redis.Do("ZCARD", "tidefill:async:workers:{gpu-1}") == fmt.Sprintf(":%d", n)
		})
	}
	for _, fault := range []func(){
		func() { // a worker is killed, and there is another
			next := p.work()
			kill(worker)
			worker = next
		},
		func() { p.redis.Do("FLUSHALL") },
		func() { // the daemon is killed
			kill(p.daemon)
			p.start()
		},
		func() { // the worker is suspended for longer than its lease
			next := p.work()
			_ = worker.Process.Signal(syscall.SIGSTOP)
			alive(1)
			_ = worker.Process.Signal(syscall.SIGCONT)
			alive(2)
			progress()
			kill(worker)
			worker = next
		},
		func() { // the only worker is killed
			kill(worker)
			alive(0)
			worker = p.work()
		},
		func() { // Redis is killed and comes back empty
			p.redis.Kill()
			p.redis.Restart()
		},
		func() { // the worker stops in good order
			next := p.work()
			_ = worker.Process.Signal(syscall.SIGTERM)
			_ = worker.Wait()
			worker = next
		},
	} {
		progress()
		t.Log("in progress:", strings.TrimSpace(must(t, exitOK, "batch", "get", id).out))
		fault()
	}
	must(t, exitOK, "batch", "watch", id)
	must(t, exitOK, "verify", id)
	got := must(t, exitOK, "batch", "get", id).out
	if !strings.Contains(got, "1,500 completed, 0 failed") {
		t.Errorf("got %s, want %d results", got, lines)
	}
}

func TestWorkerRefusesWhatItCantUse(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"", "--redis is missing"},
		{"--redis redis://a --engine http://b --runner c --concurrency 0", "--concurrency"},
		{"--redis redis://u:secret@a --engine http://b --runner c", "password_env"},
		{"--redis http://a --engine http://b --runner c", "scheme"},
	} {
		got := must(t, exitUsage, append([]string{"worker"}, strings.Fields(test.args)...)...)
		if !strings.Contains(got.errors, test.want) || strings.Contains(got.errors, "secret") {
			t.Errorf("%s: got %s, want %q", test.args, got.errors, test.want)
		}
	}
	got := must(t, exitError, "worker", "--redis", "redis://127.0.0.1:9", "--runner", "c",
		"--engine", "gpu", "--listen", "")
	if !strings.Contains(got.errors, "must look like http://host:port") {
		t.Errorf("got %s", got.errors)
	}
}
