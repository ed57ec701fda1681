package main

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// watched is the output of a command that runs. It is safe for concurrent use.
type watched struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(p)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

// awaitWatched waits until a command has cleared the screen so many times.
func awaitWatched(t *testing.T, out *watched, times int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(
		20 * time.Millisecond) {
		if strings.Count(out.String(), "\x1b[2J") >= times {
			return
		}
	}
	t.Fatalf("--watch printed:\n%s", out.String())
}
