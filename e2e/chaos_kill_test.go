package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Users use the complete API while the daemon is killed at random times, mostly within an
// operation.
func TestChaosKilledAtRandomTimes(t *testing.T) {
	t.Parallel()
	tr := begin(t, "kill -9 at a random moment")
	random := seeded(t)
	stub := NewStub(t, "m")
	stub.MaxDelay = 10 * time.Millisecond
	stub.Intercept(refuseMarked)
	d := tr.Watch(NewDaemon(t, Options{Upstreams: []string{stub.URL},
		Set: with("flowcontrol.fixed.per_runner=32", "dispatch.tuning.look_ahead=128")}))
	disk := WatchDisk(t, t.TempDir())

	k := newKiller(d, random)
	working, stopWorking := context.WithCancel(t.Context())
	defer stopWorking()
	var users []*user
	var all sync.WaitGroup
	defer all.Wait()
	for i := range 8 {
		u := newUser(fmt.Sprintf("user%d", i), d.Client(),
			rand.New(rand.NewPCG(random.Uint64(), uint64(i))), k.announce)
		users = append(users, u)
		all.Go(func() {
			if i == 0 {
				if err := u.runMany(t.Context(), 50_000); err != nil {
					t.Error(err)
				}
			}
			for working.Err() == nil {
				if err := u.act(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range inShort(15, *kills) {
		k.killOnce()
	}
	stopWorking()
	d.AwaitReady()
	all.Wait()
	tr.Tried = len(k.killed)
	if t.Failed() {
		t.FailNow()
	}

	files := checkPromises(t, tr, d, users)
	checkSwept(t, d, files)
	tr.Resent = checkRepeats(t, stub.AttemptList(Lines{}), k.killed, disk)
	t.Logf("%d kills (%s), %d requests", len(k.killed), strings.Join(k.hits(), ", "),
		stub.Requests())
}

// refuseMarked refuses the lines that are marked for it.
func refuseMarked(w http.ResponseWriter, _ *http.Request, body []byte) bool {
	if !isRefused(string(body)) {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprint(
		w, `{"error":{"message":"refused","type":"invalid_request_error","param":null,"code":null}}`)
	return true
}

// checkPromises fails the test unless exactly the acknowledged objects exist and have ended as
// expected. It returns the existing files.
func checkPromises(
	t *testing.T, tr *Trial, d *Daemon, users []*user,
) (files map[string]bool) {
	t.Helper()
	c := d.Client()
	files = map[string]bool{}
	batches := map[string]bool{}
	for _, u := range users {
		for id := range u.files {
			files[id] = true
		}
		for _, p := range u.batches {
			if p.deleted {
				for _, id := range p.results {
					files[id] = true
				}
				continue
			}
			batches[p.id] = true
			for _, id := range checkPromised(t, tr, d, p) {
				files[id] = true
			}
		}
	}
	compare(t, tr, c, "batch", batches, listAll(t, c, "/v1/batches?limit=100"))
	compare(t, tr, c, "file", files, listAll(t, c, "/v1/files?limit=10000"))
	return files
}

// checkPromised checks one batch and returns its result files.
func checkPromised(t *testing.T, tr *Trial, d *Daemon, p promised) (results []string) {
	t.Helper()
	c := d.Client()
	b := c.AwaitEnd(t, p.id, time.Minute)
	if !slices.Contains(p.ends, b.Status) {
		t.Errorf("batch %s is %s, want one of %v", b.ID, b.Status, p.ends)
	}
	sum := c.CheckOnce(t, b, p.lines)
	tr.Lost += sum.Lost
	tr.Doubled += sum.Doubled
	if counts := b.RequestCounts; b.Status == "completed" && (counts.Completed != sum.Output ||
		counts.Failed != sum.Failed) {
		t.Errorf("batch %s counts %+v, its files have %d and %d lines", b.ID, counts, sum.Output,
			sum.Failed)
	}
	if _, err := c.Content(b.InputFileID); err == nil {
		d.Verify(t, b.ID)
	}
	for _, id := range []*string{b.OutputFileID, b.ErrorFileID} {
		if id != nil {
			results = append(results, *id)
		}
	}
	return results
}

// compare counts acknowledged objects that are not listed as lost, and other listed objects as
// doubled.
func compare(
	t *testing.T, tr *Trial, c *Client, kind string, acknowledged map[string]bool, listed []string,
) {
	t.Helper()
	there := map[string]bool{}
	for _, id := range listed {
		if there[id] = true; !acknowledged[id] {
			tr.Doubled++
			t.Errorf("%s %s is listed and was not acknowledged%s", kind, id, about(c, id))
		}
	}
	for id := range acknowledged {
		if !there[id] {
			tr.Lost++
			t.Errorf("%s %s was acknowledged and is not listed", kind, id)
		}
	}
}

// about describes a file for a failure.
func about(c *Client, id string) string {
	var f File
	if err := c.json("GET", "/v1/files/"+id, "", nil, &f); err != nil {
		return ""
	}
	return fmt.Sprintf(": %q, %s, %d bytes", f.Filename, f.Purpose, f.Bytes)
}
