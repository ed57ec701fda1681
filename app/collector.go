package app

import (
	"os"
	"runtime/debug"

	"github.com/tidefill/tidefill/config"
)

const (
	// collectorPercent lets the heap grow to three times its live size before a collection, instead
	// of twice. Sending lines makes much garbage and retains little: with 100 lines in flight this
	// saves a twentieth of the CPU time per line and costs 10 MiB on top of 45. 400 would save
	// little more, for 30 MiB. Measured with tidefill-lab bench.
	collectorPercent = 200
	// collectorLimit is the heap size, apart from dispatch.memory and what the store keeps in
	// memory, above which the collector runs as often as it takes to stay there. The program itself
	// and SQLite's caches take another 25 MiB, so by default the process stays below 128 MiB.
	collectorLimit = 56 << 20
)

// TuneCollector sets the garbage collector of a process whose main task is to run an App with this
// configuration. The environment variables GOGC and GOMEMLIMIT take precedence.
func TuneCollector(cfg config.Config) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectorPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(collectorLimit + cfg.Dispatch.Memory + cfg.Store.MemoryBytes())
	}
}
