// Package redis starts real Redis servers for tests: single ones, a primary with a replica and
// Sentinels, and a cluster. They listen on loopback, keep nothing, and end with the test.
package redis

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/testservers"
)

// startWait limits the time until servers know each other.
const startWait = 20 * time.Second

// Server is one Redis server.
type Server struct {
	Addr string // host:port

	t       testing.TB
	program testservers.Program
	process *testservers.Process
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
	args = append([]string{"--bind", "127.0.0.1", "--dir", t.TempDir(), "--save", "",
		"--appendonly", "no", "--daemonize", "no"}, args...)
	if !slices.Contains(args, "--tls-port") {
		args = append(args, "--port", port)
	}
	return launch(t, port, args...)
}

// launch starts redis-server, which is to answer on the port.
func launch(t testing.TB, port string, args ...string) *Server {
	t.Helper()
	path := testservers.Path(t, "redis-server")
	s := &Server{Addr: "127.0.0.1:" + port, t: t,
		program: testservers.Program{Path: path, Args: args, Log: &testservers.Log{}}}
	t.Cleanup(s.Kill)
	s.Restart()
	return s
}

// Kill ends the server at once, and waits for its end. Nothing that it held is left.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	if err := s.process.Stop(); err != nil {
		s.t.Error(err)
	}
}

// Restart starts a server that was killed again, on the same port and empty.
func (s *Server) Restart() {
	s.t.Helper()
	var err error
	s.process, err = s.program.Start(func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// Suspend stops the process: connections are accepted, and nothing is answered.
func (s *Server) Suspend() { _ = s.process.Signal(syscall.SIGSTOP) }

// Resume ends Suspend.
func (s *Server) Resume() { _ = s.process.Signal(syscall.SIGCONT) }

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
	address, err := testservers.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	return port
}
