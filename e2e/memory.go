package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// MiB is a mebibyte.
const MiB = 1 << 20

// Peak is the most memory, in bytes, that a process of the daemon had resident so far.
func (d *Daemon) Peak() int64 { return d.readPeak(d.current()) }

// readPeak takes the kernel's figure, VmHWM, of a process into the daemon's. It changes nothing if
// the process has ended.
func (d *Daemon) readPeak(p *process) int64 {
	peak := memoryOf(p.cmd.Process.Pid, "VmHWM")
	d.mu.Lock()
	defer d.mu.Unlock()
	d.peak = max(d.peak, peak)
	return d.peak
}

// watchMemory kills a process that uses more than MaxMemory, before it takes the machine down with
// it.
func (d *Daemon) watchMemory(p *process) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.ended:
			return
		case <-tick.C:
		}
		if now := memoryOf(p.cmd.Process.Pid, "VmRSS"); now > d.MaxMemory {
			d.readPeak(p)
			d.t.Errorf("the daemon uses %d MiB and is killed: at most %d MiB are allowed", now/MiB,
				d.MaxMemory/MiB)
			p.cmd.Process.Kill()
			return
		}
	}
}

// memoryOf reads a figure of /proc/PID/status in bytes, see proc_pid_status(5); 0 when the process
// has ended.
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

// Descriptors is how many files and connections the process has open.
func (d *Daemon) Descriptors() int {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", d.current().cmd.Process.Pid))
	if err != nil {
		return 0
	}
	return len(entries)
}
