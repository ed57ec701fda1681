package redis_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	servers "github.com/tidefill/tidefill/internal/testservers/redis"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/live"
	"github.com/tidefill/tidefill/store/live/livetest"
	"github.com/tidefill/tidefill/store/redis"
	"github.com/tidefill/tidefill/store/sqlite"
	"github.com/tidefill/tidefill/store/storetest"
)

// config returns the configuration of a test: its calls may take longer beside other tests.
func config(url string) redis.Config {
	cfg := redis.DefaultConfig()
	cfg.URL, cfg.Timeout = url, time.Second
	return cfg
}

func open(t *testing.T, cfg redis.Config, o redis.Options) *redis.DB {
	t.Helper()
	db, err := redis.Open(t.Context(), cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

// conformance runs all suites on a server or cluster.
func conformance(t *testing.T, url string) {
	t.Run("Live", func(t *testing.T) {
		cfg := config(url)
		a, b := open(t, cfg, redis.Options{}), open(t, cfg, redis.Options{})
		t.Run("Snapshots", func(t *testing.T) { livetest.TestSnapshots(t, a, b) })
		t.Run("Events", func(t *testing.T) { livetest.TestEvents(t, a, b) })
		t.Run("Windows", func(t *testing.T) { livetest.TestWindows(t, a, b) })
		for _, db := range []*redis.DB{a, b} {
			if err := db.Away(); err != nil {
				t.Errorf("a call failed: %v", err)
			}
		}
	})
	var boards atomic.Int64
	storetest.TestProgress(t, func(t *testing.T, now func() time.Time) storetest.Store {
		cfg := config(url)
		cfg.Prefix = fmt.Sprintf("test%d", boards.Add(1)) // an empty board
		s := storetest.StoreOf(openSQLite(t, now))
		s.ProgressBoard = open(t, cfg, redis.Options{Progress: refusing{}})
		return s
	})
}

func openSQLite(t *testing.T, now func() time.Time) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "tidefill.db"),
		sqlite.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

// refusing is a board that nothing may reach.
type refusing struct{ store.ProgressBoard }

func TestSingle(t *testing.T) { conformance(t, "redis://"+servers.Start(t).Addr) }

func TestCluster(t *testing.T) {
	var addrs []string
	for _, s := range servers.StartCluster(t) {
		addrs = append(addrs, s.Addr)
	}
	conformance(t, "redis+cluster://"+strings.Join(addrs, ","))
}

func TestSentinel(t *testing.T) {
	r := servers.StartReplicated(t)
	var addrs []string
	for _, s := range r.Sentinels {
		addrs = append(addrs, s.Addr)
	}
	url := "redis+sentinel://" + strings.Join(addrs, ",") + "/" + servers.MasterName
	a, b := open(t, config(url), redis.Options{}), open(t, config(url), redis.Options{})
	livetest.TestSnapshots(t, a, b)
	livetest.TestEvents(t, a, b)

	r.Primary.Kill()
	began := time.Now()
	publishUntil(t, a, 30*time.Second)
	t.Logf("snapshots go through %v after the primary was killed", time.Since(began))
	awaitEvent(t, a, b, 10*time.Second)
	t.Logf("events go through %v after the primary was killed", time.Since(began))
}

// publishUntil publishes until that succeeds.
func publishUntil(t *testing.T, db *redis.DB, patience time.Duration) {
	t.Helper()
	end := time.Now().Add(patience)
	for {
		err := db.Publish(t.Context(), "pools", live.Snapshot{Name: "after", Epoch: 1})
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("nothing could be published within %v: %v", patience, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// awaitEvent emits events at one process until one reaches the other.
func awaitEvent(t *testing.T, from, to *redis.DB, patience time.Duration) {
	t.Helper()
	came := make(chan struct{}, 1000)
	defer to.Subscribe(func(_ live.Topic, ids []string) {
		if len(ids) == 1 && ids[0] == "awaited" {
			came <- struct{}{}
		}
	})()
	for end := time.After(patience); ; {
		from.Emit(live.Batches, "awaited")
		select {
		case <-came:
			return
		case <-end:
			t.Fatalf("no event came within %v", patience)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
