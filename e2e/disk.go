package e2e

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Disk measures the time to wake up at an instant and to sync a few bytes. A group commit of the
// daemon takes as long, on a slow disk as well as on busy processors.
type Disk struct {
	mu     sync.Mutex
	stalls []stall
}

type stall struct{ begin, end time.Time }

const (
	syncInterval = 20 * time.Millisecond
	slowSync     = 30 * time.Millisecond // a sync that takes longer is a stall
)

// WatchDisk measures the disk of a directory until the test ends.
func WatchDisk(t testing.TB, dir string) *Disk {
	t.Helper()
	file, err := os.Create(filepath.Join(dir, "medium"))
	if err != nil {
		t.Fatal(err)
	}
	m := &Disk{}
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			due := time.Now().Add(syncInterval)
			select {
			case <-stop:
				return
			case <-time.After(syncInterval):
			}
			file.WriteAt([]byte{0}, 0)
			if file.Sync(); time.Since(due) > slowSync {
				m.mu.Lock()
				m.stalls = append(m.stalls, stall{due, time.Now()})
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

// Stalled returns the part of a time in which the disk stalled.
func (m *Disk) Stalled(from, to time.Time) (sum time.Duration) {
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
