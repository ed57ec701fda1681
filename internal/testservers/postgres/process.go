//go:build unix

package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a server that runs as a child of this one.
type process struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{} // closed when it has ended
}

// startProcess starts a program that ends with this process at the latest.
func startProcess(directory, program string, args ...string) (*process, error) {
	path := filepath.Join(directory, filepath.Base(program)+".log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &process{cmd: exec.Command(program, args...), log: path, ended: make(chan struct{})}
	p.cmd.Dir = directory
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Dir(program))
	p.cmd.SysProcAttr = unprivileged()
	// A group of its own: an interrupt of the tests is not one of the server.
	p.cmd.SysProcAttr.Setpgid = true
	endWithParent(p.cmd.SysProcAttr)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // servers that are killed fail
	}()
	return p, nil
}

// await calls answers until it succeeds.
func (p *process) await(answers func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	for {
		err := answers(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("it has ended:\n%s", p.tail())
		case <-ctx.Done():
			return errors.Join(err, p.stop(syscall.SIGQUIT), errors.New(p.tail()))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop sends the signal and waits for the end.
func (p *process) stop(signal syscall.Signal) error {
	select {
	case <-p.ended:
		return nil
	default:
	}
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.ended:
		return nil
	case <-time.After(startLimit):
		return errors.Join(p.cmd.Process.Kill(), errors.New("it did not end after a signal"))
	}
}

// tree returns the ids of the process and of its children.
func (p *process) tree() []int {
	pids := []int{p.cmd.Process.Pid}
	children, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pids[0], pids[0]))
	for _, field := range strings.Fields(string(children)) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// tail returns the end of the log.
func (p *process) tail() string {
	content, _ := os.ReadFile(p.log)
	return string(content[max(0, len(content)-4096):])
}

// unprivileged returns the attributes of a process that is not root's: PostgreSQL refuses root.
func unprivileged() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		uid, gid := nobody()
		attributes.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	}
	return attributes
}

// nobody returns the ids of a user who is not root.
func nobody() (uid, gid uint32) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			continue
		}
		if gid, err := strconv.ParseUint(u.Gid, 10, 32); err == nil {
			return uint32(uid), uint32(gid)
		}
	}
	return 65534, 65534
}

// newDirectory creates a temporary directory that belongs to the user of the servers.
func newDirectory() (string, error) {
	directory, err := os.MkdirTemp("", "tidefill-postgres-")
	if err != nil || os.Getuid() != 0 {
		return directory, err
	}
	uid, gid := nobody()
	if err := os.Chown(directory, int(uid), int(gid)); err != nil {
		return "", errors.Join(err, os.RemoveAll(directory))
	}
	return directory, nil
}
