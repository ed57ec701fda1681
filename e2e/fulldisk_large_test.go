package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/internal/testservers/s3"
)

// A line whose answer is too large for memory is not sent while the disk has no space for it. Users
// and operators see why, and lines go on when there is space. With a bucket, lines with small
// answers go on all the time.
func TestLargeAnswersWaitForSpace(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		testLargeAnswersWait(t, false)
	})
	t.Run("bucket", func(t *testing.T) {
		t.Parallel()
		long(t, "the embedded store has the same")
		testLargeAnswersWait(t, true, append(clusterStore(t, postgres.Start(t)),
			bucket(t, s3.Start(t))...)...)
	})
}

// testLargeAnswersWait fills the disk of a daemon with these settings while answers come.
// smallGoOn says that results are not on that disk.
func testLargeAnswersWait(t *testing.T, smallGoOn bool, set ...string) {
	const inFlight, n = 12, 16 // as small limits it, and lines
	disk := smallDisk(t, 96<<20)
	stub := NewStub(t, "m")
	filled := make(chan struct{})
	ballast := strings.Repeat("x", 3<<19)
	stub.Intercept(func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		if !bytes.Contains(body, []byte(`"large-`)) {
			return false
		}
		select {
		case <-filled:
		case <-r.Context().Done():
			return true
		}
		answer := fmt.Appendf(nil, `{"choices":[{"message":{"content":%q}}],"ballast":%q}`,
			Digest(body), ballast)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		w.Write(answer)
		return true
	})
	admin := freeAddress(t)
	d := NewDaemon(t, Options{Upstreams: []string{stub.URL}, Data: filepath.Join(disk, "data"),
		Admin: admin, Set: append(with("dispatch.tuning.lease_ttl=8s"), set...)})
	c := d.Client()
	large := NewLines("large", "m", n)
	id := c.Submit(t, large.Content, "").ID
	c.Await(t, id, 20*time.Second, func(b Batch) bool { return b.Tidefill.InFlight == inFlight })
	free := fill(t, disk)
	close(filled)
	c.Await(t, id, 20*time.Second, func(b Batch) bool {
		return b.WaitsFor("disk_full") && b.Tidefill.InFlight == 0
	})
	others := 0
	if smallGoOn {
		lines := NewLines("small", "m", 200)
		c.CheckComplete(t, c.AwaitEnd(t, c.Submit(t, lines.Content, "").ID, 20*time.Second), lines)
		others = 200
	}
	await(t, 10*time.Second, "that /readyz says disk_full and stays ready", func() bool {
		r := d.Readiness(t)
		return r.Ready && strings.Contains(strings.Join(r.Degraded, "\n"), "disk_full: ")
	})
	await(t, 10*time.Second, "that explain says disk_full", func() bool {
		out, status := d.Run("explain", "--admin", "http://"+admin)
		return status == 0 && strings.Contains(out, "disk_full")
	})
	// With a pause of 20 ms before a retry, and of a second before the next look at the space,
	// lines that do not wait come again within this time.
	time.Sleep(3 * time.Second)
	if sent := stub.Requests() - others; sent > inFlight {
		t.Errorf("%d large lines were sent while the disk was full, and %d were in flight before",
			sent-inFlight, inFlight)
	}
	if b, err := c.Batch(id); err != nil || !b.WaitsFor("disk_full") || b.Status != "in_progress" {
		t.Errorf("on the full disk the batch is %s and waits for %q, %v", b.Status,
			orZero(b.Tidefill.Waiting), err)
	}
	said := strings.Contains(d.Log(), "no new lines and no uploads")
	if said == smallGoOn {
		t.Errorf("the log says that uploads wait: %v", said)
	}
	free()
	c.CheckComplete(t, c.AwaitEnd(t, id, 60*time.Second), large)
	d.Verify(t, id)
	if sent := stub.Requests() - others; sent > inFlight+n {
		t.Errorf("%d large lines were sent, want %d and those that were in flight", sent, n)
	}
	await(t, 10*time.Second, "that nothing is degraded", func() bool {
		return len(d.Readiness(t).Degraded) == 0
	})
}
