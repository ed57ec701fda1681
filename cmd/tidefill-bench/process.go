package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// process is a child whose CPU time and memory are read while it runs.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
}

// roleVariable is set in the environment of children that run this binary, to the part they play.
const roleVariable = "TIDEFILL_BENCH_ROLE"

// play is the main function of a child. Children end when their standard input does, so none
// outlives its parent.
func play(role string) error {
	switch role {
	case "stub":
		return serveUntilParentEnds(&stub{})
	case "hostile":
		return serveUntilParentEnds(hostile{})
	case "sink":
		return serveUntilParentEnds(sink{path: os.Args[1]})
	case "loop":
		return runLoop(os.Args[1], os.Stdin, os.Stdout)
	}
	return fmt.Errorf("unknown role %q", role)
}

// startRole starts this binary in one of the roles of play.
func (l *lab) startRole(ctx context.Context, role string, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
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

// readLine returns what the child says next.
func (p *process) readLine() (string, error) {
	line, err := p.stdout.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// kill ends the child as kill -9 does, and returns when it is gone.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait() // says that it was killed
}

// clockTick is the unit of CPU times in /proc, the same on every Linux.
const clockTick = time.Second / 100

// cpuTime is what the child has used so far, in user and system mode, over all its threads.
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
		return 0, fmt.Errorf("read CPU time: %q is no process status", stat)
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * clockTick, errors.Join(err1, err2)
}

// peakMemory is the most memory that the child ever had resident, in bytes.
func (p *process) peakMemory() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	return parsePeakMemory(text)
}

// watchPeak follows a child that ends by itself; what it returns says the most memory that the
// child was seen to have had. The kernel's own account of an ended child (ru_maxrss) won't do: it
// counts what the parent had resident when it started the child.
func (p *process) watchPeak() (most func() int64) {
	const often = 20 * time.Millisecond
	peak, stop, ended := int64(0), make(chan struct{}), make(chan struct{})
	look := func() {
		if now, err := p.peakMemory(); err == nil { // it has ended otherwise
			peak = max(peak, now)
		}
	}
	look()
	go func() {
		defer close(ended)
		tick := time.NewTicker(often)
		defer tick.Stop()
		for {
			look()
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
