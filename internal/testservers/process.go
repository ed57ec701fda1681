//go:build unix

package testservers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// startLimit is above what a loaded machine needs to start or to end a server.
const startLimit = 2 * time.Minute

// Program is what Start runs.
type Program struct {
	Path string
	Args []string
	Dir  string              // the working directory; default: that of this process
	Env  []string            // added to that of this process
	User *syscall.Credential // default: that of this process
	// End is the signal that ends it, in Stop and when this process ends. Default: SIGKILL.
	End syscall.Signal
	Log *Log // default: a new one
}

// Process is a running program. It ends with this process at the latest.
type Process struct {
	Program
	Ended <-chan struct{} // closed when it has ended
	cmd   *exec.Cmd
}

// Start starts a program and waits until ready returns nil; nil: it does not wait.
func (p Program) Start(ready func(context.Context) error) (*Process, error) {
	if p.Log == nil {
		p.Log = &Log{}
	}
	p.End = cmp.Or(p.End, syscall.SIGKILL)
	cmd := exec.Command(p.Path, p.Args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.Dir, p.Log, p.Log
	// Programs of bin/ have their libraries beside them.
	cmd.Env = append(append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Dir(p.Path)), p.Env...)
	// A group of its own: an interrupt of the tests is not one of the server.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.User, Setpgid: true}
	endWithParent(cmd.SysProcAttr, p.End)
	cmd.WaitDelay = 2 * time.Second // a child of it may outlive it and hold the log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Path, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // servers that are killed fail
	}()
	running := &Process{Program: p, Ended: ended, cmd: cmd}
	if ready == nil {
		return running, nil
	}
	err := running.await(ready)
	return running, err
}

func (p *Process) await(ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.Ended:
			return fmt.Errorf("%s has ended:\n%s", p.Path, p.Log.Tail())
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s is not ready:\n%s", p.Path, p.Log.Tail()), err,
				p.Stop())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Run is Start for a test. The program ends with the test, whose log shows the end of its own if
// the test fails.
func (p Program) Run(t testing.TB, ready func(context.Context) error) *Process {
	t.Helper()
	process, err := p.Start(ready)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the end of the log of %s:\n%s", filepath.Base(p.Path), process.Log.Tail())
		}
	})
	return process
}

// Signal sends a signal, unless the process has ended.
func (p *Process) Signal(signal syscall.Signal) error {
	if err := p.cmd.Process.Signal(signal); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Stop ends the process and waits until it has ended.
func (p *Process) Stop() error {
	err := p.Signal(p.End)
	if p.End != syscall.SIGKILL {
		err = errors.Join(err, p.Signal(syscall.SIGCONT)) // it may be suspended
	}
	select {
	case <-p.Ended:
		return err
	case <-time.After(startLimit):
		return errors.Join(err, p.cmd.Process.Kill(), fmt.Errorf("%s did not end", p.Path))
	}
}

// PID returns the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// ExitCode returns the status of a process that has ended; -1: a signal ended it.
func (p *Process) ExitCode() int { return p.cmd.ProcessState.ExitCode() }
