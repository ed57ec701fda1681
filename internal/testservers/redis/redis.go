// Package redis starts real Redis servers for tests: single ones, a primary with a replica and
// Sentinels, and a cluster. They listen on loopback, keep nothing, and end with the test.
package redis

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/testservers"
)

// startWait limits how long a server may take until it answers.
const startWait = 20 * time.Second

// Server is one Redis server.
type Server struct {
	Addr string // host:port

	t       testing.TB
	args    []string
	dir     string
	command *exec.Cmd
	ended   chan struct{}
	log     lockedBuffer
}

// Start starts a server. Further arguments are those of redis-server, such as "--requirepass", "x".
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return StartAt(t, freePort(t), args...)
}

// StartAt starts a server on a port of loopback. With --tls-port among the arguments it is that of
// TLS.
func StartAt(t testing.TB, port string, args ...string) *Server {
	t.Helper()
	s := &Server{Addr: "127.0.0.1:" + port, t: t, dir: t.TempDir()}
	s.args = append([]string{"--bind", "127.0.0.1", "--dir", s.dir, "--save", "",
		"--appendonly", "no", "--daemonize", "no"}, args...)
	if !slices.Contains(args, "--tls-port") {
		s.args = append(s.args, "--port", port)
	}
	s.launch()
	t.Cleanup(s.Kill)
	return s
}

// launch runs the program and waits until the port answers.
func (s *Server) launch() {
	s.t.Helper()
	s.command = exec.Command(testservers.Program(s.t, "redis-server"), s.args...)
	s.command.Stdout, s.command.Stderr = &s.log, &s.log
	// It ends with the test, also if the test is killed.
	s.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.command.Start(); err != nil {
		s.t.Fatalf("start redis-server: %v", err)
	}
	s.ended = make(chan struct{})
	go func(c *exec.Cmd, ended chan struct{}) {
		_ = c.Wait()
		close(ended)
	}(s.command, s.ended)
	for end := time.Now().Add(startWait); ; {
		conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
		if err == nil {
			conn.Close()
			return
		}
		select {
		case <-s.ended:
			s.t.Fatalf("redis-server ended at once:\n%s", s.log.String())
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(end) {
			s.t.Fatalf("redis-server did not answer within %v: %v\n%s", startWait, err,
				s.log.String())
		}
	}
}

// Kill ends the server at once, and waits for its end. Nothing that it held is left.
func (s *Server) Kill() {
	_ = s.command.Process.Signal(syscall.SIGCONT)
	_ = s.command.Process.Kill()
	<-s.ended
}

// Restart starts a server that was killed again, on the same port and empty.
func (s *Server) Restart() {
	s.t.Helper()
	s.launch()
}

// Suspend stops the process: connections are accepted, and nothing is answered.
func (s *Server) Suspend() { _ = s.command.Process.Signal(syscall.SIGSTOP) }

// Resume ends Suspend.
func (s *Server) Resume() { _ = s.command.Process.Signal(syscall.SIGCONT) }

// Do sends a command without TLS and returns the first line of the answer.
func (s *Server) Do(command ...string) string {
	s.t.Helper()
	answer, err := do(s.Addr, command...)
	if err != nil {
		s.t.Fatalf("send %v to redis-server: %v", command, err)
	}
	return answer
}

func do(addr string, command ...string) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	var request strings.Builder
	fmt.Fprintf(&request, "*%d\r\n", len(command))
	for _, word := range command {
		fmt.Fprintf(&request, "$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := conn.Write([]byte(request.String())); err != nil {
		return "", err
	}
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	if err == nil && strings.HasPrefix(line, "$") {
		body, err := readBody(in, line)
		return body, err
	}
	return strings.TrimSpace(line), err
}

func readBody(in *bufio.Reader, header string) (string, error) {
	var size int
	if _, err := fmt.Sscanf(header, "$%d", &size); err != nil || size < 0 {
		return "", err
	}
	body := make([]byte, size)
	for n := 0; n < size; {
		k, err := in.Read(body[n:])
		if err != nil {
			return "", err
		}
		n += k
	}
	return string(body), nil
}

func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// lockedBuffer holds what a server logs.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
