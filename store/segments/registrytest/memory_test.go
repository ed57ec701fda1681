package registrytest_test

import (
	"sync"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store/segments"
	"github.com/tidefill/tidefill/store/segments/registrytest"
)

func TestMemory(t *testing.T) {
	registrytest.Test(t, func(*testing.T) (here, there segments.Registry,
		advance func(time.Duration)) {
		var mu sync.Mutex
		now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		r := registrytest.NewMemory(func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return now
		})
		return r, r, func(d time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			now = now.Add(d)
		}
	})
}
