package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// While the only runner of a model answers quickly and wrongly, the batch waits, and everything
// that an operator looks at says so. When the runner is well, the batch completes.
func TestFailFastOnlyRunner(t *testing.T) {
	t.Parallel()
	type only struct {
		name, faults string
		after        int // lines that complete before the runner turns bad
		address      string
		batch        string
	}
	cases := []*only{
		{name: "500", faults: `{"server_error":1}`},
		{name: "401", faults: `{"unauthorized":1}`},
		{name: "login-page", faults: `{"login_page":1}`},
		{name: "later-500", faults: `{"server_error":1}`, after: 100},
		{name: "later-401", faults: `{"unauthorized":1}`, after: 100},
		{name: "later-empty", faults: `{"empty":1}`, after: 100},
	}
	var upstreams []string
	for _, x := range cases {
		x.address = freeAddress(t)
		upstreams = append(upstreams, startRunner(t, x.address, "--profile", "llama-8b-a100",
			"--speedup", "5", "--output-median", "20", "--model", x.name, "--max-seqs", "8"))
	}
	// Frequent trials, so that the test is short: they pause for up to eight times this.
	d := NewDaemon(t, Options{Upstreams: upstreams, Admin: freeAddress(t),
		Set: []string{"flowcontrol.policy=aimd", "dispatch.tuning.breaker.base=100ms",
			"dispatch.tuning.breaker.max=250ms"}})
	c := d.Client()
	const lines = 600
	for _, x := range cases {
		if x.after == 0 {
			setFaults(t, x.address, x.faults)
		}
		x.batch = c.Submit(t, NewLines("l", x.name, lines).Content, "").ID
	}
	for _, x := range cases {
		if x.after > 0 {
			c.Await(t, x.batch, 20*time.Second, func(b Batch) bool {
				return b.RequestCounts.Completed >= x.after
			})
			setFaults(t, x.address, x.faults)
		}
	}
	over := time.After(sized(10*time.Second, 5*time.Minute))

	for _, x := range cases {
		c.Await(t, x.batch, 15*time.Second, func(b Batch) bool {
			return b.WaitsFor("runners_failing")
		})
		d.checkFailing(t, x.name, x.address, 1)
	}
	<-over
	for _, x := range cases {
		b, err := c.Batch(x.batch)
		if err != nil || !b.WaitsFor("runners_failing") || b.RequestCounts.Failed > 0 {
			t.Errorf("%s: before the runner is well the batch is %s, %+v, waiting %q, %v", x.name,
				b.Status, b.RequestCounts, orZero(b.Tidefill.Waiting), err)
		}
		d.checkFailing(t, x.name, x.address, 1)
		setFaults(t, x.address, "{}")
	}
	for _, x := range cases {
		b := c.AwaitEnd(t, x.batch, 30*time.Second)
		if b.Status != "completed" || b.RequestCounts.Completed != lines ||
			b.RequestCounts.Failed > 0 || b.Tidefill.Waiting != nil {
			t.Errorf("%s: the batch is %s, %+v, waiting %q", x.name, b.Status, b.RequestCounts,
				orZero(b.Tidefill.Waiting))
		}
		d.Verify(t, x.batch)
		d.checkFailing(t, x.name, x.address, 0)
	}
}

// checkFailing fails the test unless everything that operators look at says that a runner is
// failing (1) or that none of them does (0), and the log has warned of each change once.
func (d *Daemon) checkFailing(t *testing.T, pool, runner string, want float64) {
	t.Helper()
	await(t, 5*time.Second, fmt.Sprintf("tidefill_runner_failing of %s to be %v", pool, want),
		func() bool {
			return seriesIn(metricsOf(t, d.Admin), fmt.Sprintf(
				`tidefill_runner_failing{pool=%q,runner=%q}`, pool, runner)) == want
		})
	is := want == 1
	degraded := strings.Join(d.Readiness(t).Degraded, "\n")
	if strings.Contains(degraded, "runner "+runner+" is failing") != is {
		t.Errorf("%s: degraded is %q, want it to name %s: %v", pool, degraded, runner, is)
	}
	out, status := d.Run("explain", pool, "--admin", "http://"+d.Admin)
	if status != 0 || strings.Contains(out, "FAILING") != is ||
		is && !strings.Contains(out, runner) {
		t.Errorf("%s: explain, status %d, want FAILING: %v\n%s", pool, status, is, out)
	}
	opened, closed := 0, 0
	for row := range strings.Lines(d.Log()) {
		if !strings.Contains(row, "level=WARN") || !strings.Contains(row, "runner="+runner) {
			continue
		}
		if strings.Contains(row, "answers nearly all lines badly") {
			opened++
		}
		if strings.Contains(row, "answers lines well again") {
			closed++
		}
	}
	if opened != 1 || closed != int(1-want) {
		t.Errorf("%s: the log warns %d times that the runner is bad and %d times that it is well",
			pool, opened, closed)
	}
}

// setFaults sets the faults of an emulated runner.
func setFaults(t *testing.T, address, faults string) {
	t.Helper()
	c := &Client{URL: "http://" + address, HTTP: http.DefaultClient}
	answer, err := c.Do(http.MethodPost, "/admin/faults", "application/json",
		strings.NewReader(faults))
	if err != nil || answer.Status >= 300 {
		t.Fatalf("faults of %s: status %d, %v", address, answer.Status, err)
	}
}

// A key that is changed at the upstream within a batch costs no line: the batch waits until
// the daemon has the new one.
func TestFailFastRotatedKey(t *testing.T) {
	t.Parallel()
	var accepted atomic.Value
	accepted.Store("old")
	stub := NewStub(t, "m")
	stub.MinDelay, stub.MaxDelay = 10*time.Millisecond, 20*time.Millisecond
	stub.Intercept(func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if r.Header.Get("X-Key") == accepted.Load() {
			return false
		}
		apiError(http.StatusUnauthorized)(w, r)
		return true
	})
	upstream := func(key string) string {
		return fmt.Sprintf("flowcontrol: {policy: aimd}\nupstreams:\n- {url: %q, headers: "+
			"{X-Key: %s}}\n", stub.URL, key)
	}
	file := newConfigFile(t, upstream("old"))
	d := NewDaemon(t, Options{Args: []string{"--config", file.path}})
	c := d.Client()
	lines := NewLines("rotated", "m", 2000)
	b := c.Submit(t, lines.Content, "")
	c.Await(t, b.ID, 10*time.Second, func(b Batch) bool { return b.RequestCounts.Completed > 100 })
	accepted.Store("new")
	c.Await(t, b.ID, 10*time.Second, func(b Batch) bool { return b.WaitsFor("runners_failing") })
	file.write(upstream("new"))
	d.Signal(syscall.SIGHUP)
	c.CheckComplete(t, c.AwaitEnd(t, b.ID, 20*time.Second), lines)
	d.Verify(t, b.ID)
}
