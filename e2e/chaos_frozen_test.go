package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A single daemon is frozen for longer than its lease while users work, and continues afterwards.
func TestChaosFrozenAlone(t *testing.T) {
	long(t, "a fault of the suite of chaos")
	t.Parallel()
	tr := begin(t, "frozen beyond the lease, alone")
	random := seeded(t)
	stub := NewStub(t, "m")
	stub.MaxDelay = 10 * time.Millisecond
	stub.Intercept(refuseMarked)
	d := tr.Watch(NewDaemon(t, Options{Upstreams: []string{stub.URL},
		Set: with("dispatch.tuning.lease_ttl=3s")}))
	working, stopWorking := context.WithCancel(t.Context())
	defer stopWorking()
	var users []*user
	var all sync.WaitGroup
	defer all.Wait()
	for i := range 4 {
		u := newUser(fmt.Sprintf("user%d", i), d.Client(),
			rand.New(rand.NewPCG(random.Uint64(), uint64(i))), func(string) {})
		users = append(users, u)
		all.Go(func() {
			for working.Err() == nil {
				if err := u.act(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range sized(2, 30) {
		time.Sleep(time.Duration(random.ExpFloat64() * float64(500*time.Millisecond)))
		d.Signal(syscall.SIGSTOP)
		time.Sleep(4 * time.Second)
		d.Signal(syscall.SIGCONT)
		tr.Tried++
	}
	time.Sleep(time.Second)
	stopWorking()
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	checkPromises(t, tr, d, users)
	tr.Resent = stub.Repeats()
	if most := tr.Tried * 3 * 12; tr.Resent > most {
		t.Errorf("%d lines were sent again, want at most %d", tr.Resent, most)
	}
}

// A daemon is frozen while it writes result files. Another one writes them, a user deletes them,
// and they remain deleted when the first one continues.
func TestChaosFrozenWhileFinalizing(t *testing.T) {
	long(t, "a fault of the suite of chaos")
	t.Parallel()
	tr := begin(t, "frozen while finalizing, results deleted")
	n := startNodes(t, tr, 2)
	n.stub.MinDelay, n.stub.MaxDelay = 0, time.Millisecond
	much := strings.Repeat("0123456789abcdef", 1024)
	n.stub.Intercept(func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"choices":[{"message":{"content":%q}}],"ballast":%q}`, Digest(body), much)
		return true
	})
	wanted := sized(1, 20)
	for try := 0; tr.Tried < wanted && try < 10*wanted; try++ {
		before := time.Now()
		lines := NewLines(fmt.Sprint("finalized-", try), "m", 2000)
		b := n.any(0).Client().Submit(t, lines.Content, "")
		await(t, 10*time.Second, "that a daemon sends", func() bool {
			return len(n.stub.AttemptList(Lines{}).After(before)) > 100
		})
		sender := n.stub.AttemptList(Lines{}).After(before).Sender()
		other := n.any(slices.Index(n.names, sender) + 1)
		c := other.Client()
		for b.Status != "finalizing" && !b.Ended() && time.Since(before) < 30*time.Second {
			var err error
			if b, err = c.Batch(b.ID); err != nil {
				t.Fatal(err)
			}
		}
		heal := freezeNode(t, n, sender)
		frozen := time.Now()
		b = c.AwaitEnd(t, b.ID, 30*time.Second)
		if time.Since(frozen) > nodeLease/2 { // the frozen daemon was writing it
			tr.Tried++
		}
		sum := c.CheckOnce(t, b, lines)
		tr.Lost += sum.Lost
		tr.Doubled += sum.Doubled
		other.Verify(t, b.ID)
		for _, path := range []string{"/v1/files/" + *b.OutputFileID, "/v1/batches/" + b.ID} {
			if answer, err := c.Do("DELETE", path, "", nil); err != nil ||
				answer.Status != http.StatusOK {
				t.Errorf("DELETE %s: status %d, %v: %.200s", path, answer.Status, err, answer.Body)
			}
		}
		heal()
		after := NewLines(fmt.Sprint("after-", try), "m", 20)
		thawed := n.daemons[sender].Client()
		thawed.CheckComplete(t, thawed.AwaitEnd(t, thawed.Submit(t, after.Content, "").ID,
			20*time.Second), after)
		if answer, err := thawed.Do("GET", "/v1/files/"+*b.OutputFileID, "", nil); err != nil ||
			answer.Status != http.StatusNotFound {
			tr.Doubled++
			t.Errorf("the deleted result exists again: status %d, %v", answer.Status, err)
		}
		if blobs, _ := filepath.Glob(filepath.Join(other.Data, "blobs",
			"files", *b.OutputFileID+"*")); len(blobs) > 0 {
			tr.Doubled++
			t.Errorf("the bytes of the deleted result exist again: %v", blobs)
		}
	}
	tr.Resent = n.stub.Repeats()
	t.Logf("the daemon that wrote the files was frozen %d times", tr.Tried)
}
