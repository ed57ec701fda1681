package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

func TestTermDrains(t *testing.T) {
	t.Parallel()
	stub := NewStub(t, "m")
	stub.MinDelay, stub.MaxDelay = 100*time.Millisecond, 200*time.Millisecond
	d := NewDaemon(t, Options{Upstreams: []string{stub.URL},
		Set: append([]string{"shutdown.drain=1s"}, small...)})
	c := d.Client()
	lines := NewLines("drain", "m", 100)
	b := c.Submit(t, lines.Content, "")
	c.Await(t, b.ID, 10*time.Second, func(b Batch) bool { return b.RequestCounts.Completed > 10 })

	// Some lines never end: they are aborted at the limit.
	var hanging atomic.Int64
	stub.Intercept(func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
		if rand.IntN(4) > 0 {
			return false
		}
		hanging.Add(1)
		<-r.Context().Done()
		return true
	})
	c.Await(t, b.ID, 10*time.Second, func(Batch) bool { return hanging.Load() > 2 })
	began := time.Now()
	d.Signal(syscall.SIGTERM)
	if status := d.Wait(4 * time.Second); status != 0 {
		t.Errorf("the drained daemon ended with status %d, want 0", status)
	}
	took := time.Since(began)
	if took < 900*time.Millisecond {
		t.Errorf("it ended after %v, with lines in flight that had 1s to finish", took)
	}
	awaitThat(t, 5*time.Second, "the end of all lines that the daemon aborted", func() bool {
		return stub.InFlight() == 0
	})
	stub.Intercept(nil)
	answered := map[string]bool{}
	for digest, attempts := range stub.Ledger() {
		answered[digest] = attempts[0].End.Sub(attempts[0].Begin) < 300*time.Millisecond
	}
	d.Start()
	d.AwaitReady()
	ended := c.AwaitEnd(t, b.ID, 20*time.Second)
	c.CheckComplete(t, ended, lines)
	d.Verify(t, b.ID)
	for digest, attempts := range stub.Ledger() {
		if answered[digest] && len(attempts) > 1 {
			t.Errorf("line %.8s was answered before the end, and sent again", digest)
		}
	}
}

func TestSecondSignalEndsTheProcess(t *testing.T) {
	t.Parallel()
	stub := NewStub(t, "m")
	stub.Intercept(func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
		<-r.Context().Done()
		return true
	})
	for _, second := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(second.String(), func(t *testing.T) {
			d := NewDaemon(t, Options{Upstreams: []string{stub.URL}, Set: small})
			c := d.Client()
			lines := NewLines("second-"+strconv.Itoa(int(second)), "m", 20)
			b := c.Submit(t, lines.Content, "")
			c.Await(t, b.ID, 10*time.Second, func(b Batch) bool { return b.Tidefill.InFlight > 0 })
			d.Signal(syscall.SIGTERM)
			time.Sleep(300 * time.Millisecond)
			select {
			case <-d.current().Ended:
				t.Fatal("the daemon did not wait for the lines in flight")
			default:
			}
			d.Signal(second)
			if status := d.Wait(time.Second); status == 0 {
				t.Error("an aborted daemon ended with status 0")
			}
		})
	}
}

func TestTakeoverFromAFrozenNode(t *testing.T) {
	t.Parallel()
	stub := NewStub(t, "m")
	stub.MinDelay, stub.MaxDelay = 20*time.Millisecond, 60*time.Millisecond
	set := append([]string{"dispatch.tuning.lease_ttl=3s"}, small...)
	data := t.TempDir()
	frozen := NewDaemon(t, Options{Upstreams: []string{stub.URL}, Set: set, Data: data,
		Args: []string{"--node", "one"}})
	other := NewDaemon(t, Options{Upstreams: []string{stub.URL}, Set: set, Data: data,
		Args: []string{"--node", "other"}})
	c := other.Client()
	inputs := map[string]Lines{}
	for i := range 3 {
		lines := NewLines(fmt.Sprintf("frozen-%d", i), "m", 800)
		inputs[c.Submit(t, lines.Content, "").ID] = lines
	}
	time.Sleep(700 * time.Millisecond)
	freeze(t, frozen, other)
	for id := range inputs {
		c.AwaitEnd(t, id, 20*time.Second) // its lease expires meanwhile
	}
	frozen.Signal(syscall.SIGCONT)
	time.Sleep(500 * time.Millisecond) // for the late answers of the frozen daemon
	for id, lines := range inputs {
		b, err := c.Batch(id)
		if err != nil {
			t.Fatal(err)
		}
		c.CheckComplete(t, b, lines)
		other.Verify(t, id)
	}
	extra := stub.Requests() - 2400
	t.Logf("%d lines were sent again", extra)
	// Lines that the frozen daemon had in flight, and lines answered within its last group commit.
	// When it continues, it must not send lines that others have taken over.
	if most := 12 + 18; extra == 0 || extra > most {
		t.Errorf("%d lines were sent again, want 1 to %d", extra, most)
	}
	// Both must continue to serve.
	for _, d := range []*Daemon{frozen, other} {
		lines := NewLines("after-"+d.Args[1], "m", 50)
		b := d.Client().Submit(t, lines.Content, "")
		d.Client().CheckComplete(t, d.Client().AwaitEnd(t, b.ID, 20*time.Second), lines)
	}
}

// freeze stops a daemon while it does not write to the database. Otherwise it would hold the lock
// that all processes share, which only its holder releases.
func freeze(t *testing.T, d, other *Daemon) {
	t.Helper()
	c := other.Client()
	c.HTTP.Timeout = time.Second
	for range 20 {
		d.Signal(syscall.SIGSTOP)
		if _, err := c.Upload([]byte(line("probe"))); err == nil {
			return
		}
		d.Signal(syscall.SIGCONT)
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the daemon writes to the database permanently")
}

func TestNodeNamesAreUnique(t *testing.T) {
	t.Parallel()
	stub := NewStub(t, "m")
	d := NewDaemon(t, Options{Upstreams: []string{stub.URL}})
	out, status := d.Run("serve", "--listen", freeAddress(t), "--admin-listen", "",
		"--data", d.Data, "--upstream", stub.URL)
	if status != 1 || !strings.Contains(out, "node") {
		t.Errorf("a second daemon of the same name: status %d\n%s", status, out)
	}
}
