package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidefill/tidefill/simulator/lab/live"
)

// process is a child whose CPU time and memory are read while it runs.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
}

// RoleVariable is the environment variable that holds the role of a child that runs this binary.
const RoleVariable = "TIDEFILL_LAB_ROLE"

// RunRole is the main function of a child, whose role is in RoleVariable. isChild is false if this
// process is none. A child ends when its standard input ends, so none outlives its parent.
func RunRole() (isChild bool, err error) {
	role := os.Getenv(RoleVariable)
	if role == "" {
		return false, nil
	}
	return true, runRole(role)
}

func runRole(role string) error {
	switch role {
	case "stub":
		delay, err := time.ParseDuration(os.Args[1])
		if err != nil {
			return err
		}
		return serveUntilParentEnds(&stub{delay: delay,
			streams: slices.Contains(os.Args[2:], "streams")})
	case "hostile":
		return serveUntilParentEnds(hostile{})
	case "sink":
		return serveUntilParentEnds(sink{path: os.Args[1]})
	case live.RunnerRole:
		return live.ServeRunner(os.Args[1:], os.Stdin)
	case "loop":
		return runLoop(os.Args[1], os.Stdin, os.Stdout)
	}
	return fmt.Errorf("unknown role %q", role)
}

// startRole starts this binary in one of the roles of runRole.
func (l *environment) startRole(
	ctx context.Context, role string, args ...string,
) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = append(os.Environ(), RoleVariable+"="+role)
	cmd.Stderr = l.stderr
	return start(cmd)
}

func start(cmd *exec.Cmd) (*process, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &process{cmd: cmd, stdin: in, stdout: bufio.NewReader(out)}, nil
}

// readLine returns the next row of the child's output.
func (p *process) readLine() (string, error) {
	line, err := p.stdout.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// kill ends the child as kill -9 does, and returns when it is gone.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait() // fails: it was killed
}

// clockTick is the unit of CPU times in /proc, the same on every Linux.
const clockTick = time.Second / 100

// cpuTime returns the CPU time of the child so far, user and system, over all its threads.
func (p *process) cpuTime() (time.Duration, error) {
	path := fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid)
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	return parseCPUTime(text)
}

// parseCPUTime reads utime and stime, fields 14 and 15 of /proc/PID/stat, see proc_pid_stat(5).
func parseCPUTime(stat []byte) (time.Duration, error) {
	// Field 2 is the name, which may hold spaces and brackets; field 3 follows its last bracket.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("read CPU time: %q is not a process status", stat)
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * clockTick, errors.Join(err1, err2)
}

// peakMemory returns the largest resident memory of the child so far, in bytes.
func (p *process) peakMemory() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	return parsePeakMemory(text)
}

// watchPeak samples the memory of a child that ends by itself, and returns a function that stops
// the sampling and returns the peak. The kernel's figure for an ended child (ru_maxrss) can't be
// used, because it includes what the parent had resident when it started the child.
func (p *process) watchPeak() (most func() int64) {
	const interval = 20 * time.Millisecond
	peak, stop, ended := int64(0), make(chan struct{}), make(chan struct{})
	sample := func() {
		if now, err := p.peakMemory(); err == nil { // fails after the child has ended
			peak = max(peak, now)
		}
	}
	sample()
	go func() {
		defer close(ended)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			sample()
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	return func() int64 {
		close(stop)
		<-ended
		return peak
	}
}

// parsePeakMemory reads VmHWM, see proc_pid_status(5).
func parsePeakMemory(status []byte) (int64, error) {
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(
				value), "kB")), 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("read peak memory: the process status has no VmHWM")
}
