package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// The bytes of a deleted input remain while a batch of any daemon needs them. The daemon that ends
// the first batch of the file was frozen when another one accepted a second batch, and it sweeps at
// its next start.
func TestChaosNodesShareInputs(t *testing.T) {
	long(t, "a fault of the suite of chaos")
	t.Parallel()
	tr := begin(t, "2 daemons, input deleted and swept by the other")
	n := startNodes(t, tr, 2, "api.tuning.orphan_after=1m", "dispatch.tuning.poll_every=2s")
	for round := range sized(2, 30) {
		tr.Tried++
		lines := NewLines(fmt.Sprint("input-", round), "m", 100)
		released := make(chan struct{})
		last := []byte(fmt.Sprintf("input-%d-99 ", round))
		n.stub.Intercept(func(_ http.ResponseWriter, r *http.Request, body []byte) bool {
			if bytes.Contains(body, last) {
				select {
				case <-released:
				case <-r.Context().Done():
				}
			}
			return false
		})
		first := n.any(round).Client().Submit(t, lines.Content, "")
		n.any(round).Client().Await(t, first.ID, 20*time.Second, func(b Batch) bool {
			return b.RequestCounts.Completed == 99
		})
		sender := n.stub.AttemptList(Lines{Bodies: map[string]string{
			"": lines.Bodies[fmt.Sprintf("input-%d-99", round)]}}).Sender()

		heal := freezeNode(t, n, sender)
		c := n.any(slices.Index(n.names, sender) + 1).Client()
		second, err := c.CreateBatch(first.InputFileID, "")
		if err != nil {
			t.Fatal(err)
		}
		call := func(method, path string) {
			if answer, err := c.Do(method, path, "", nil); err != nil ||
				answer.Status != http.StatusOK {
				t.Fatalf("%s %s: status %d, %v: %.200s", method, path, answer.Status, err,
					answer.Body)
			}
		}
		call("POST", "/v1/batches/"+second.ID+"/pause")
		call("DELETE", "/v1/files/"+first.InputFileID)
		close(released)
		heal()

		c.CheckComplete(t, c.AwaitEnd(t, first.ID, 20*time.Second), lines)
		age(t, n.any(0).Data)
		n.daemons[sender].Restart()
		// The sweep of the start has no visible effect if it removes nothing.
		time.Sleep(500 * time.Millisecond)
		call("POST", "/v1/batches/"+second.ID+"/resume")
		second = c.AwaitEnd(t, second.ID, 20*time.Second)
		sum := c.CheckOnce(t, second, lines)
		tr.Lost += sum.Lost
		tr.Doubled += sum.Doubled
		c.CheckComplete(t, second, lines)
	}
}

// age makes all blobs old enough for the sweep.
func age(t *testing.T, data string) {
	t.Helper()
	old := time.Now().Add(-25 * time.Hour)
	err := filepath.WalkDir(filepath.Join(data, "blobs"), func(path string, entry os.DirEntry,
		err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		return os.Chtimes(path, old, old)
	})
	if err != nil {
		t.Fatal(err)
	}
}
