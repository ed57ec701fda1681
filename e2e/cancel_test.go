package e2e

import (
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

func cancelBatch(t *testing.T, c *Client, id string) {
	t.Helper()
	if answer, err := c.Do("POST", "/v1/batches/"+id+"/cancel", "", nil); err != nil ||
		answer.Status != http.StatusOK {
		t.Fatalf("cancel: %d %.300s, %v", answer.Status, answer.Body, err)
	}
}

// wantKept checks that a cancelled batch has a number of results and lists all other lines.
func wantKept(t *testing.T, d *Daemon, b Batch, lines Lines, kept int) {
	t.Helper()
	sum := d.Client().CheckOnce(t, b, lines)
	if n := b.RequestCounts; b.Status != "cancelled" || n.Completed != kept ||
		sum.Output != kept || sum.Failed != n.Total-kept {
		t.Errorf("the batch is %s, %+v, its files have %d and %d lines; want it cancelled with "+
			"%d results", b.Status, n, sum.Output, sum.Failed, kept)
	}
	d.Verify(t, b.ID)
}

// inFlight is how many lines are in flight under the settings named small.
const inFlight = 12

// A runner that hangs, and does not notice that connections close, delays no cancel.
func TestCancelWhileTheRunnerHangs(t *testing.T) {
	t.Parallel()
	const answered = 20
	var requests atomic.Int64
	gone := make(chan struct{})
	t.Cleanup(func() { close(gone) })
	stub := NewRawStub(t, "m", func(conn net.Conn, request *http.Request, body []byte) bool {
		if requests.Add(1) > answered {
			<-gone
			return false
		}
		return AnswerCorrectly(conn, request, body)
	})
	d := NewDaemon(t, Options{Upstreams: []string{stub.URL}, Set: small})
	c, lines := d.Client(), NewLines("hang", "m", 100)
	id := c.Submit(t, lines.Content, "").ID
	c.Await(t, id, 20*time.Second, func(b Batch) bool {
		return b.RequestCounts.Completed == answered && b.Tidefill.InFlight == inFlight
	})
	begin := time.Now()
	cancelBatch(t, c, id)
	b := c.AwaitEnd(t, id, 20*time.Second)
	if took := time.Since(begin); took > 5*time.Second { // dispatch.cancel_grace is 30s
		t.Errorf("the cancelled batch took %v to end", took)
	} else {
		t.Logf("the cancelled batch ended after %v", took)
	}
	wantKept(t, d, b, lines, answered)
}

// On a full disk a cancel ends the lines in flight at once, and the batch keeps the answers that
// could not be written yet.
func TestCancelOnAFullDisk(t *testing.T) {
	t.Parallel()
	const answered, late = 20, 4
	disk := smallDisk(t, 32<<20)
	stub := NewStub(t, "m")
	var requests atomic.Int64
	some := make(chan struct{}, late)
	stub.Intercept(func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
		if requests.Add(1) <= answered {
			return false
		}
		select {
		case <-some:
			return false
		case <-r.Context().Done():
			return true
		}
	})
	d := NewDaemon(t, Options{Upstreams: []string{stub.URL}, Data: filepath.Join(disk, "data"),
		Set: small})
	c, lines := d.Client(), NewLines("full", "m", 100)
	id := c.Submit(t, lines.Content, "").ID
	c.Await(t, id, 20*time.Second, func(b Batch) bool {
		return b.RequestCounts.Completed == answered && b.Tidefill.InFlight == inFlight
	})
	free := fill(t, disk)
	for range late {
		some <- struct{}{}
	}
	full := func(b Batch) bool { return b.WaitsFor("disk_full") }
	c.Await(t, id, 20*time.Second, func(b Batch) bool {
		return b.Tidefill.Attempts-int64(b.Tidefill.InFlight) == answered+late && full(b)
	})
	begin := time.Now()
	cancelBatch(t, c, id)
	for stub.InFlight() > 0 {
		if time.Since(begin) > 5*time.Second {
			t.Fatalf("%d lines are in flight at the runner", stub.InFlight())
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Logf("the lines in flight ended after %v", time.Since(begin))
	if b := c.Await(t, id, 20*time.Second, full); b.Status != "cancelling" {
		t.Errorf("the batch is %s on the full disk", b.Status)
	}
	free()
	wantKept(t, d, c.AwaitEnd(t, id, 20*time.Second), lines, answered+late)
}
