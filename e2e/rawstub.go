package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
)

// RawStub is a runner that answers lines with raw bytes and may violate HTTP.
type RawStub struct {
	URL string

	listener net.Listener
	mu       sync.Mutex
	handler  RawHandler
	models   func() string  // the body of GET /v1/models
	wire     map[string]int // completely received requests of lines, by digest of the body
	open     map[net.Conn]bool
}

// RawHandler answers one request of a line. It reports whether the connection may serve another
// one.
type RawHandler func(conn net.Conn, request *http.Request, body []byte) (keep bool)

// NewRawStub serves a model until the test ends.
func NewRawStub(t testing.TB, model string, handler RawHandler) *RawStub {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &RawStub{URL: "http://" + listener.Addr().String(), listener: listener, handler: handler,
		wire: map[string]int{}, open: map[net.Conn]bool{}}
	s.models = func() string { return fmt.Sprintf(`{"object":"list","data":[{"id":%q,"object":"model"}]}`, model) }
	go s.accept()
	t.Cleanup(s.close)
	return s
}

// SetHandler changes the handler of later requests.
func (s *RawStub) SetHandler(handler RawHandler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handler = handler
}

// List changes the answer of GET /v1/models.
func (s *RawStub) List(models func() string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models = models
}

// Wire returns the number of times that each body was received, by digest.
func (s *RawStub) Wire() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	wire := make(map[string]int, len(s.wire))
	for digest, n := range s.wire {
		wire[digest] = n
	}
	return wire
}

func (s *RawStub) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.open[conn] = true
		s.mu.Unlock()
		go s.serve(conn)
	}
}

func (s *RawStub) close() {
	s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.open {
		conn.Close()
	}
}

func (s *RawStub) serve(conn net.Conn) {
	defer func() {
		conn.Close()
		s.mu.Lock()
		delete(s.open, conn)
		s.mu.Unlock()
	}()
	for in := bufio.NewReader(conn); ; {
		request, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return
		}
		if request.Method == http.MethodGet {
			if !s.serveModels(conn, request) {
				return
			}
			continue
		}
		s.mu.Lock()
		s.wire[Digest(body)]++
		handler := s.handler
		s.mu.Unlock()
		if !handler(conn, request, body) {
			return
		}
	}
}

func (s *RawStub) serveModels(conn net.Conn, request *http.Request) (keep bool) {
	s.mu.Lock()
	models := s.models
	s.mu.Unlock()
	status, body := "404 Not Found", "{}"
	if request.URL.Path == "/v1/models" {
		status, body = "200 OK", models()
	}
	_, err := fmt.Fprintf(
		conn, "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		status, len(body), body)
	return err == nil
}

// AnswerCorrectly answers as the Stub does, with the request's id.
func AnswerCorrectly(conn net.Conn, request *http.Request, body []byte) (keep bool) {
	_, err := io.WriteString(conn, rawAnswer(request, completion("m", Digest(body))))
	return err == nil
}

// rawAnswer returns a correct answer to a request.
func rawAnswer(request *http.Request, body string) string {
	return fmt.Sprintf(
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Request-Id: %s\r\nContent-Length: "+
			"%d\r\n\r\n%s",
		request.Header.Get("X-Request-Id"), len(body), body)
}
