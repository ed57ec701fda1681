package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// withOpenFiles returns the program with another limit of open files.
func withOpenFiles(t testing.TB, limit int) string {
	t.Helper()
	script := filepath.Join(t.TempDir(), "tidefill")
	text := fmt.Sprintf("#!/bin/sh\nulimit -n %d && exec %s \"$@\"\n", limit, Binary(t))
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return script
}

func dialDaemon(t testing.TB, d *Daemon) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", d.Listen)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

// awaitClosed reads until the daemon closes the connection, and returns an error after the limit.
func awaitClosed(c net.Conn, limit time.Duration) error {
	c.SetReadDeadline(time.Now().Add(limit))
	_, err := io.Copy(io.Discard, c)
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		return fmt.Errorf("the connection is still open after %v", limit)
	}
	return nil
}

// awaitOK repeats a request until the answer is 200.
func awaitOK(t *testing.T, client *http.Client, url string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(
		10 * time.Millisecond) {
		answer, err := client.Get(url)
		if err != nil {
			continue
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			return
		}
	}
	t.Fatalf("%s does not answer 200", url)
}

// TestHalfOpenRequests opens 2,000 requests without bodies, on all routes, without a key and with
// the content type of uploads. The daemon may open 1,024 files. Other clients must be served.
func TestHalfOpenRequests(t *testing.T) {
	t.Parallel()
	admin := freeAddress(t)
	d := NewDaemon(t, Options{
		Binary: withOpenFiles(t, 1024), Keys: ownKey, Upstreams: []string{NewStub(t, "m").URL},
		Args: []string{"--admin-listen", admin},
	})
	routes := []string{
		"/v1/files", "/v1/files/x", "/v1/files/x/content", "/v1/uploads", "/v1/uploads/x/parts",
		"/v1/uploads/x/complete",
		"/v1/batches", "/v1/batches/x/cancel", "/v1/batches/x/events", "/v1/models", "/nowhere",
		"/",
	}
	heads := []string{"Content-Length: 100000000\r\n\r\n--x", "Content-Length: 100\r\n\r\n--x",
		"Transfer-Encoding: chunked\r\n\r\n5\r\n--x"}
	probe := &http.Client{Timeout: 10 * time.Second}
	awaitOK(t, probe, "http://"+admin+"/readyz")
	var held []*net.TCPConn
	for i := range 2000 {
		c := dialDaemon(t, d)
		fmt.Fprintf(
			c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=x\r\n%s",
			routes[i%len(routes)], heads[i%len(heads)])
		held = append(held, c)
		if i%100 > 0 {
			continue
		}
		if answer, err := probe.Get("http://" + admin + "/readyz"); err != nil ||
			answer.StatusCode != http.StatusOK {
			t.Fatalf("/readyz with %d half-open requests: %v, %v", i, answer, err)
		} else {
			answer.Body.Close()
		}
	}
	began := time.Now()
	for {
		answer, err := d.Client().Do("GET", "/v1/models", "", nil)
		if err == nil && answer.Status == http.StatusOK {
			break
		}
		if err == nil && answer.Status != http.StatusServiceUnavailable ||
			time.Since(began) > 10*time.Second {
			t.Fatalf("a client with a key gets %d, %v after %v", answer.Status, err,
				time.Since(began))
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("a client with a key was answered after %v", time.Since(began))
	for _, c := range held {
		if err := awaitClosed(c, 10*time.Second); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSlowClientsAreDisconnected sends uploads and reads answers byte by byte. The minimum rate is
// 4 KiB/s.
func TestSlowClientsAreDisconnected(t *testing.T) {
	long(t, "it waits for the time-outs of slow clients")
	t.Parallel()
	d := NewDaemon(t, Options{Upstreams: []string{NewStub(t, "m").URL},
		Set: []string{"http.tuning.grace=2s", "http.tuning.body_timeout=3s",
			"api.unknown_models=wait"}})
	content := NewLines("slow", "nobody", 100_000).Content
	f, err := d.Client().Upload(content)
	if err != nil {
		t.Fatal(err)
	}
	trickle := func(c net.Conn, stop <-chan struct{}) {
		for tick := time.NewTicker(200 * time.Millisecond); ; {
			select {
			case <-stop:
				return
			case <-tick.C:
				if _, err := io.WriteString(c, "x"); err != nil {
					return
				}
			}
		}
	}
	var all sync.WaitGroup
	for name, head := range map[string]string{
		"a file": "POST /v1/files HTTP/1.1\r\nHost: localhost\r\nContent-Type: " +
			"multipart/form-data; boundary=x\r\nContent-Length: 100000\r\n\r\n--x\r\n",
		"a JSON body": "POST /v1/batches HTTP/1.1\r\nHost: localhost\r\nContent-Type: " +
			"application/json\r\nContent-Length: 100000\r\n\r\n{",
		"another route": "POST /v1/models HTTP/1.1\r\nHost: localhost\r\nContent-Type: " +
			"multipart/form-data; boundary=x\r\nContent-Length: 100000\r\n\r\n--x",
	} {
		all.Go(func() {
			c := dialDaemon(t, d)
			io.WriteString(c, head)
			stop := make(chan struct{})
			defer close(stop)
			go trickle(c, stop)
			if err := awaitClosed(c, 15*time.Second); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	for _, path := range []string{"/v1/files/" + f.ID + "/content"} {
		all.Go(func() {
			c := dialDaemon(t, d)
			c.SetReadBuffer(16 << 10)
			fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
			answer, err := http.ReadResponse(bufio.NewReaderSize(c, 16), nil)
			if err != nil {
				t.Error(err)
				return
			}
			var got atomic.Int64
			for one, until := make([]byte, 1), time.Now().Add(12*time.Second); time.Now().Before(
				until); time.Sleep(100 * time.Millisecond) {
				n, err := answer.Body.Read(one)
				got.Add(int64(n))
				if err != nil {
					break
				}
			}
			rest, _ := io.Copy(io.Discard, answer.Body)
			if total := got.Load() + rest; total == f.Bytes {
				t.Errorf("%s: a reader of 10 bytes per second got all %d bytes", path, total)
			}
		})
	}
	all.Go(func() { // a client above the minimum rate: 1 MB/s for twice the time
		answer, err := http.Get(d.URL + "/v1/files/" + f.ID + "/content")
		if err != nil {
			t.Error(err)
			return
		}
		defer answer.Body.Close()
		var got int64
		for began := time.Now(); got < 5<<20; time.Sleep(
			time.Until(began.Add(time.Duration(got) * time.Microsecond))) {
			n, err := io.CopyN(io.Discard, answer.Body, 64<<10)
			if got += n; err != nil {
				t.Errorf("a reader above the minimum rate was disconnected after %d bytes: %v", got,
					err)
				return
			}
		}
	})
	all.Wait()
}

// TestHalfClosedClients sends a request and closes the sending side, as nc and some proxies do.
func TestHalfClosedClients(t *testing.T) {
	t.Parallel()
	d := NewDaemon(t, Options{Upstreams: []string{NewStub(t, "m").URL},
		Set: []string{"api.unknown_models=wait"}})
	f, err := d.Client().Upload(NewLines("half", "nobody", 100).Content)
	if err != nil {
		t.Fatal(err)
	}
	kind, form := Form([][2]string{{"purpose", "batch"}}, "input.jsonl", NewLines("closed",
		"nobody", 2000).Content)
	create := fmt.Sprintf(
		`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`, f.ID)
	post := func(path, kind, body string) string {
		return fmt.Sprintf(
			"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n"+
				"%s", path, kind, len(body), body)
	}
	for name, request := range map[string]string{
		"an upload":  post("/v1/files", kind, string(form)),
		"a creation": post("/v1/batches", "application/json", create),
		"a listing":  "GET /v1/files HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"content":    "GET /v1/files/" + f.ID + "/content HTTP/1.1\r\nHost: localhost\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				c := dialDaemon(t, d)
				io.WriteString(c, request)
				c.CloseWrite()
				c.SetReadDeadline(time.Now().Add(20 * time.Second))
				answer, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(answer.Body)
				if answer.StatusCode != http.StatusOK || err != nil {
					t.Fatalf("got %d, %v: %.200s", answer.StatusCode, err, body)
				}
			}
		})
	}
	t.Run("a stream ends", func(t *testing.T) {
		b, err := d.Client().CreateBatch(f.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		c := dialDaemon(t, d)
		fmt.Fprintf(c, "GET /v1/batches/%s/events HTTP/1.1\r\nHost: localhost\r\n\r\n", b.ID)
		lines := bufio.NewReader(c)
		for began := ""; !strings.HasPrefix(began, "event: state"); {
			if began, err = lines.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		c.CloseWrite()
		if err := awaitClosed(c, 10*time.Second); err != nil {
			t.Error(err)
		}
	})
}
