//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/apptest"
)

// logged is a process of the program, with what it has logged.
type logged struct {
	*exec.Cmd
	t   *testing.T
	mu  sync.Mutex
	log bytes.Buffer
}

func startLogged(t *testing.T, args ...string) *logged {
	t.Helper()
	p := &logged{Cmd: exec.Command(os.Args[0], args...), t: t}
	p.Env, p.Stderr = append(os.Environ(), asMain+"=1"), p
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Process.Kill()
		p.Wait()
	})
	return p
}

func (p *logged) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(text)
}

func (p *logged) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// await waits until the process has logged a text.
func (p *logged) await(text string) {
	p.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(p.text(), text); {
		if time.Now().After(deadline) {
			p.t.Fatalf("it never logs %q:\n%s", text, p.text())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A pipe is read at start, as a shell makes it of <(…), and not again. SIGHUP then says so.
func TestConfigurationFromAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "tidefill.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	go os.WriteFile(pipe, []byte("node: from-a-pipe\n"), 0o600)
	p := startLogged(t, "serve", "--config", pipe, "--listen", "127.0.0.1:0", "--admin-listen", "",
		"--data", t.TempDir(), "--upstream", apptest.StartRunner(t, nil))
	p.await("node=from-a-pipe")
	p.Process.Signal(syscall.SIGHUP)
	p.await("there is no configuration file to read again")
	p.Process.Signal(syscall.SIGTERM)
	p.await("msg=stopped")
	if text := p.text(); strings.Contains(text, "level=ERROR") {
		t.Errorf("the log has an error:\n%s", text)
	}
}

// awaitReader waits until a process reads a pipe, which it lets it do without an end.
func awaitReader(t *testing.T, pipe string) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		// Without a reader this fails, instead of waiting for one.
		writer, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			t.Cleanup(func() { writer.Close() })
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody reads the pipe: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A process whose configuration can't be read, as nobody writes the pipe, ends nevertheless.
func TestStopWhileTheConfigurationIsRead(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "tidefill.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	p := startLogged(t, "serve", "--config", pipe)
	awaitReader(t, pipe) // before, the signal ends any process
	p.Process.Signal(syscall.SIGTERM)
	p.await("stopped before it could be read")
}

// A fault that only the start finds has its place in the file.
func TestFaultsOfTheStartHaveAPlace(t *testing.T) {
	const upstream = "upstreams:\n- url: http://127.0.0.1:1\n"
	for more, want := range map[string]string{
		"auth:\n  keys_file: /nowhere\n": ":4: auth.keys_file: read keys file: open /nowhere: ",
		"  api_key_env: TIDEFILL_NO_KEY\n": ":3: upstreams[0].api_key_env: upstream 127.0.0.1:1: " +
			"the environment variable TIDEFILL_NO_KEY",
	} {
		file := writeFile(t, "tidefill.yaml", upstream+more)
		got := must(t, exitError, "serve", "--config", file, "--listen", "127.0.0.1:0",
			"--admin-listen", "", "--data", t.TempDir())
		if !strings.Contains(got.errors, file+want) {
			t.Errorf("got %s, want %s", got.errors, file+want)
		}
	}
}
