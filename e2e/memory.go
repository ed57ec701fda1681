package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tidefill/tidefill/internal/testservers"
)

// MiB is a mebibyte.
const MiB = 1 << 20

// Peak returns the highest resident memory of the daemon's processes so far, in bytes.
func (d *Daemon) Peak() int64 { return d.readPeak(d.current()) }

// readPeak updates the daemon's peak with VmHWM of a process, and returns it. It changes nothing if
// the process has ended.
func (d *Daemon) readPeak(p *testservers.Process) int64 {
	peak := memoryOf(p.PID(), "VmHWM")
	d.mu.Lock()
	defer d.mu.Unlock()
	d.peak = max(d.peak, peak)
	return d.peak
}

// watchMemory kills a process that uses more than MaxMemory, to protect the machine.
func (d *Daemon) watchMemory(p *testservers.Process) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.Ended:
			return
		case <-tick.C:
		}
		if now := memoryOf(p.PID(), "VmRSS"); now > d.MaxMemory {
			d.readPeak(p)
			d.t.Errorf("the daemon uses %d MiB and is killed: at most %d MiB are allowed", now/MiB,
				d.MaxMemory/MiB)
			_ = p.Stop()
			return
		}
	}
}

// memoryOf reads a figure of /proc/PID/status in bytes, see proc_pid_status(5). 0: the process has
// ended.
func memoryOf(pid int, figure string) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if value, found := strings.CutPrefix(line, figure+":"); found {
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib << 10
		}
	}
	return 0
}

// Descriptors returns the number of open files and connections of the process.
func (d *Daemon) Descriptors() int {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", d.current().PID()))
	if err != nil {
		return 0
	}
	return len(entries)
}
