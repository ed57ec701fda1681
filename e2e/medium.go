package e2e

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Medium watches how long the file system takes to make a few bytes durable. What the daemon has
// under way then, waits as long: its group commit ends when the medium says so.
type Medium struct {
	mu     sync.Mutex
	stalls []stall
}

type stall struct{ begin, end time.Time }

const (
	mediumEvery = 20 * time.Millisecond
	mediumSlow  = 30 * time.Millisecond // a sync that takes longer is a stall
)

// WatchMedium watches a directory's medium until the test ends.
func WatchMedium(t testing.TB, dir string) *Medium {
	t.Helper()
	file, err := os.Create(filepath.Join(dir, "medium"))
	if err != nil {
		t.Fatal(err)
	}
	m := &Medium{}
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(mediumEvery):
			}
			begin := time.Now()
			file.WriteAt([]byte{0}, 0)
			if file.Sync(); time.Since(begin) > mediumSlow {
				m.mu.Lock()
				m.stalls = append(m.stalls, stall{begin, time.Now()})
				m.mu.Unlock()
			}
		}
	})
	t.Cleanup(func() {
		close(stop)
		watching.Wait()
		file.Close()
	})
	return m
}

// Stalled is how much of a time the medium took nothing.
func (m *Medium) Stalled(from, to time.Time) (sum time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.stalls {
		begin, end := s.begin, s.end
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		sum += max(0, end.Sub(begin))
	}
	return sum
}
