package app_test

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/store/cluster"
)

// The limit of the collector has room for what a store keeps in memory, or the collector would run
// all the time.
func TestCollectorLeavesRoomForTheStore(t *testing.T) {
	t.Setenv("GOGC", "100")
	t.Setenv("GOMEMLIMIT", "")
	t.Cleanup(func() { debug.SetMemoryLimit(math.MaxInt64) })
	limitOf := func(cfg config.Config) int64 {
		app.TuneCollector(cfg)
		return debug.SetMemoryLimit(-1)
	}
	cfg := config.Default()
	embedded := limitOf(cfg)

	cfg.Store.Backend = cluster.Name
	if got := limitOf(cfg); got != embedded {
		t.Errorf("without a bucket the limit is %d, want %d", got, embedded)
	}
	withBucket := cluster.DefaultConfig()
	withBucket.Objects.Bucket = "b"
	cfg.Store.Settings[cluster.Name] = withBucket
	keeps := withBucket.Objects.WriteBytes + withBucket.Objects.ReadBytes
	if got := limitOf(cfg); got < embedded+keeps+64<<20 {
		t.Errorf("with a bucket the limit is %d, want %d, %d for its buffers and 64 MiB for a "+
			"cache", got, embedded, keeps)
	}
}
