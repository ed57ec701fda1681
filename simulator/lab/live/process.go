package live

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// process is a child that ends with the trial.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser // children that run this binary end when it is closed
	log   *lastBytes
	ended chan struct{}
	once  sync.Once
}

// startProcess starts a child. Its standard error is kept for messages.
func startProcess(name string, args, env []string) (*process, error) {
	p := &process{cmd: exec.Command(name, args...), log: &lastBytes{}, ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr, p.cmd.Stdout = p.log, p.log
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.cmd.Wait() // reported by what asks the child for something
		close(p.ended)
	}()
	return p, nil
}

// kill ends the child as kill -9 does, and returns when it is gone.
func (p *process) kill() { p.end(os.Kill, 0) }

// stop asks the child to end, and kills it if it has not after the patience.
func (p *process) stop(patience time.Duration) { p.end(syscall.SIGTERM, patience) }

func (p *process) end(signal os.Signal, patience time.Duration) {
	p.once.Do(func() {
		p.cmd.Process.Signal(signal)
		select {
		case <-p.ended:
		case <-time.After(patience):
			p.cmd.Process.Kill()
		}
		<-p.ended
		p.stdin.Close()
	})
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// await calls ready until it succeeds, the child ends or ctx is done.
func (p *process) await(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended: %w\n%s", p.cmd.Path, err, p.log)
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w\n%s", p.cmd.Path, ctx.Err(), err, p.log)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// lastBytes keeps the end of what is written to it.
type lastBytes struct {
	mu   sync.Mutex
	text []byte
}

const maxLog = 16 << 10

func (l *lastBytes) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if len(l.text) > 2*maxLog {
		l.text = bytes.Clone(l.text[len(l.text)-maxLog:])
	}
	return len(p), nil
}

func (l *lastBytes) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
