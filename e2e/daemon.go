package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/testservers"
)

// Options configure a daemon.
type Options struct {
	Binary    string // default: Binary
	Listen    string // default: a free port
	Admin     string // the address of health and metrics; default: none
	Data      string // default: a temporary directory
	Upstreams []string
	Keys      string   // as in TIDEFILL_API_KEYS
	Set       []string // key=value
	Roles     []string // default: all; without api only the address Admin answers
	Args      []string
	// ClockStep steps the wall clock of a SteppedBinary. Whole seconds.
	ClockStep time.Duration
	Files     int   // descriptors that the process may open; default: as many as the test
	MaxMemory int64 // bytes above which the process is killed and the test fails; 0: no limit
}

// Daemon is a `tidefill serve` that can be killed and started again on the same address and data.
type Daemon struct {
	Options
	URL string

	t       testing.TB
	mu      sync.Mutex
	process *testservers.Process
	peak    int64 // the highest peak of memory of its processes, in bytes
	log     testservers.Log

	differences map[string]string // from the description of the API: an example of each kind
	proxy       *httptest.Server
}

// NewDaemon starts a daemon and waits until it answers. It ends with the test, which fails if there
// was a data race or a panic.
func NewDaemon(t testing.TB, o Options) *Daemon {
	t.Helper()
	if o.Binary == "" {
		o.Binary = Binary(t)
	}
	if o.Listen == "" {
		o.Listen = freeAddress(t)
	}
	if o.Data == "" {
		o.Data = t.TempDir()
	}
	if o.Admin == "" && !o.servesAPI() {
		o.Admin = freeAddress(t)
	}
	d := &Daemon{Options: o, URL: "http://" + o.Listen, t: t}
	t.Cleanup(func() {
		d.Kill()
		log := d.log.String()
		for _, word := range []string{"DATA RACE", "panic:", "panicked", "fatal error:"} {
			if strings.Contains(log, word) {
				t.Errorf("the daemon's log has %q", word)
			}
		}
		if t.Failed() {
			t.Logf("log of the daemon on %s:\n%s", o.Listen, d.log.Tail())
		}
	})
	d.compareExchanges(t)
	d.Start()
	d.AwaitReady()
	return d
}

func (o Options) servesAPI() bool {
	return len(o.Roles) == 0 || slices.Contains(o.Roles, "api")
}

// Start starts the process and returns at once.
func (d *Daemon) Start() {
	d.t.Helper()
	args := []string{"serve", "--listen", d.Listen, "--admin-listen", d.Admin, "--data", d.Data}
	if len(d.Roles) > 0 {
		args = append(args, "--roles", strings.Join(d.Roles, ","))
	}
	for _, url := range d.Upstreams {
		args = append(args, "--upstream", url)
	}
	for _, set := range d.Set {
		args = append(args, "--set", set)
	}
	program := testservers.Program{Path: d.Binary, Args: append(args, d.Args...), Log: &d.log,
		Env: []string{"TIDEFILL_API_KEYS=" + d.Keys,
			fmt.Sprintf("%s=%d", clockVariable, d.ClockStep/time.Second)}}
	if d.Files > 0 {
		program.Args = append([]string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$@"`, d.Files),
			"sh", d.Binary}, program.Args...)
		program.Path = "/bin/sh"
	}
	p, err := program.Start(nil)
	if err != nil {
		d.t.Fatal(err)
	}
	d.mu.Lock()
	d.process = p
	d.mu.Unlock()
	if d.MaxMemory > 0 {
		go d.watchMemory(p)
	}
}

func (d *Daemon) current() *testservers.Process {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.process
}

// AwaitReady waits until the API answers or, of a daemon that serves none, until it is ready.
func (d *Daemon) AwaitReady() {
	d.t.Helper()
	url := d.URL + "/v1/models"
	if !d.servesAPI() {
		url = "http://" + d.Admin + "/readyz"
	}
	p := d.current()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(
		5 * time.Millisecond) {
		select {
		case <-p.Ended:
			d.t.Fatalf("the daemon ended at once with status %d\n%s", p.ExitCode(), d.log.Tail())
		default:
		}
		if response, err := http.Get(url); err == nil {
			response.Body.Close()
			// While it opens its store it answers 503.
			if response.StatusCode == http.StatusOK || d.servesAPI() &&
				response.StatusCode != http.StatusServiceUnavailable {
				return
			}
		}
	}
	d.t.Fatalf("the daemon does not answer\n%s", d.log.Tail())
}

// Signal sends a signal to the process.
func (d *Daemon) Signal(sig syscall.Signal) {
	d.t.Helper()
	if err := d.current().Signal(sig); err != nil {
		d.t.Fatal(err)
	}
}

// Kill ends the process with SIGKILL and returns when it has ended.
func (d *Daemon) Kill() {
	p := d.current()
	d.readPeak(p)
	if err := p.Stop(); err != nil {
		d.t.Error(err)
	}
}

// Alive reports whether the process runs.
func (d *Daemon) Alive() bool {
	select {
	case <-d.current().Ended:
		return false
	default:
		return true
	}
}

// Wait returns the exit status, -1 after a signal. The test fails if the process runs longer than
// limit.
func (d *Daemon) Wait(limit time.Duration) int {
	d.t.Helper()
	p := d.current()
	select {
	case <-p.Ended:
		return p.ExitCode()
	case <-time.After(limit):
		d.t.Fatalf("the process still runs after %v\n%s", limit, d.log.Tail())
		return 0
	}
}

// Restart kills the process and starts it again.
func (d *Daemon) Restart() {
	d.t.Helper()
	d.Kill()
	d.Start()
	d.AwaitReady()
}

// Run runs another command of the program against the daemon and returns its output and exit
// status.
func (d *Daemon) Run(args ...string) (output string, status int) {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), d.Binary, args...)
	first, _, _ := strings.Cut(d.Keys, ",")
	key := first[strings.LastIndexByte(first, '=')+1:] // key or tenant=key
	cmd.Env = append(os.Environ(), "TIDEFILL_SERVER="+d.DescribedURL(), "TIDEFILL_API_KEY="+key)
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		d.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// Log returns the output of the processes so far.
func (d *Daemon) Log() string { return d.log.String() }

func freeAddress(t testing.TB) string {
	t.Helper()
	address, err := testservers.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}
