package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A dispatcher that was frozen while it wrote result files must not create them again after another
// one has written them and a user has deleted them.
func TestFrozenProcessDoesNotRestoreDeletedResults(t *testing.T) {
	t.Parallel()
	stub := NewStub(t, "m")
	large := strings.Repeat("0123456789abcdef", 4096)
	stub.Intercept(func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"choices":[{"message":{"content":%q}}],"ballast":%q}`, Digest(body), large)
		return true
	})
	settings := append([]string{"dispatch.tuning.lease_ttl=3s"}, small...)
	for round, frozen := 0, 0; frozen < 3; round++ {
		if round == 20 {
			t.Fatalf(
				"in %d rounds the daemon was frozen between two writes to its database only %d "+
					"times", round, frozen)
		}
		data := t.TempDir()
		slow := NewDaemon(t, Options{Upstreams: []string{stub.URL}, Data: data, Set: settings,
			Args: []string{"--node", "slow"}})
		c := slow.Client()
		lines := NewLines(fmt.Sprintf("frozen-%d", round), "m", 300)
		b := c.Submit(t, lines.Content, "")
		awaitResults(t, data)
		slow.Signal(syscall.SIGSTOP)

		quick := NewDaemon(t, Options{Upstreams: []string{stub.URL}, Data: data, Set: settings,
			Args: []string{"--node", "quick"}})
		if frozeInWrite(quick) {
			slow.Signal(syscall.SIGCONT)
			slow.Kill()
			quick.Kill()
			continue
		}
		frozen++
		ended := quick.Client().AwaitEnd(t, b.ID, 30*time.Second)
		quick.Client().CheckComplete(t, ended, lines)
		if answer, err := quick.Client().Do("DELETE", "/v1/files/"+*ended.OutputFileID,
			"", nil); err != nil || answer.Status != 200 {
			t.Fatalf("delete the output: %d, %v", answer.Status, err)
		}
		slow.Signal(syscall.SIGCONT)
		next := NewLines(fmt.Sprintf("next-%d", round), "m", 5)
		id := c.Submit(t, next.Content, "").ID
		c.CheckComplete(t, c.AwaitEnd(t, id, 30*time.Second), next)
		slow.Signal(syscall.SIGTERM)
		slow.Wait(30 * time.Second)

		if _, err := quick.Client().Content(*ended.OutputFileID); err == nil {
			t.Errorf("round %d: the deleted output can be downloaded again", round)
		}
		for _, id := range listAll(t, quick.Client(), "/v1/files?limit=100") {
			if id == *ended.OutputFileID {
				t.Errorf("round %d: the deleted output is listed again", round)
			}
		}
		if left, err := filepath.Glob(filepath.Join(data, "blobs",
			"files", *ended.OutputFileID+"*")); err != nil || len(left) > 0 {
			t.Errorf("round %d: bytes of the deleted output exist again: %v, %v", round, left, err)
		}
		quick.Kill()
	}
}

// awaitResults waits until the daemon has begun to write result files.
func awaitResults(t *testing.T, data string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(
		time.Millisecond) {
		writing, err := filepath.Glob(filepath.Join(data, "tmp", "process-*", "blob-*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range writing {
			if info, err := os.Stat(name); err == nil && info.Size() > 1<<20 {
				return
			}
		}
	}
	t.Fatal("the daemon writes no results")
}

// frozeInWrite reports whether a process was stopped while it held the lock of the database, which
// only the process itself releases.
func frozeInWrite(other *Daemon) bool {
	c := other.Client()
	c.HTTP.Timeout = 3 * time.Second
	_, err := c.Upload([]byte(line("probe")))
	return err != nil
}
