package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

const testStall = 100 * time.Millisecond

// dialHandler serves one handler under progressing and returns a connection to it.
func dialHandler(t *testing.T, handler http.HandlerFunc) net.Conn {
	t.Helper()
	server := httptest.NewServer(progressing(handler, testStall))
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestReaderThatStandsStillIsCutOff(t *testing.T) {
	failed := make(chan error, 1)
	conn := dialHandler(t, func(w http.ResponseWriter, _ *http.Request) {
		for chunk := bytes.Repeat([]byte("x"), 1<<20); ; {
			if _, err := w.Write(chunk); err != nil {
				failed <- err
				return
			}
		}
	})
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	select {
	case <-failed:
	case <-time.After(10 * time.Second):
		t.Fatal("a client that reads nothing holds its handler")
	}
}

func TestBodyThatStandsStillIsCutOff(t *testing.T) {
	failed := make(chan error, 1)
	conn := dialHandler(t, func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		failed <- err
	})
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nx")
	select {
	case err := <-failed:
		if err == nil {
			t.Error("a body cut short was read without an error")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("a client that sends nothing holds its handler")
	}
}

// An answer that takes its time, between request and answer or between two parts of it, is no stalled one; and the
// connection serves further requests.
func TestSlowAnswersArrive(t *testing.T) {
	conn := dialHandler(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		for range 2 {
			select {
			case <-r.Context().Done():
				t.Error("the request was given up")
			case <-time.After(2 * testStall):
			}
			io.WriteString(w, "part\n")
			http.NewResponseController(w).Flush()
		}
	})
	answers := bufio.NewReader(conn)
	for range 2 {
		fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx")
		answer, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(answer.Body); err != nil || string(body) != "part\npart\n" {
			t.Errorf("answer %q, %v", body, err)
		}
	}
}
