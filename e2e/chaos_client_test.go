package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// slowLimit bounds how long a stalled or very slow client may hold a connection.
const slowLimit = 75 * time.Second

// openFiles is a limit of descriptors below the number of slow clients.
const openFiles = 512

// Very slow clients are disconnected. Meanwhile other clients, the runner and health checks are
// served.
func TestChaosSlowClients(t *testing.T) {
	long(t, "a fault of the suite of chaos")
	t.Parallel()
	tr := begin(t, "clients: half-open and a byte a second")
	stub := NewStub(t, "m")
	stub.MaxDelay = 5 * time.Millisecond
	admin := freeAddress(t)
	d := tr.Watch(NewDaemon(t, Options{Upstreams: []string{stub.URL}, Keys: "k", Admin: admin,
		Files: openFiles, Set: small, MaxMemory: maxMemory}))
	c := d.Client()
	large, err := c.Upload(bytes.Repeat([]byte(line("x")+"\n"), 200_000))
	if err != nil {
		t.Fatal(err)
	}
	usual := d.Descriptors()
	const key = "Authorization: Bearer k\r\n"
	form := func(key string) string {
		return "POST /v1/files HTTP/1.1\r\nHost: localhost\r\n" + key +
			"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 100000\r\n\r\n"
	}
	const file = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.jsonl\"\r\n" +
		"\r\n"
	each := sized(100, 350)
	slow := newIdlers(t)
	for _, k := range []struct{ name, sent string }{
		{"an upload before authentication", form("") + file},
		{"an upload", form(key) + file},
		{"another multipart body before authentication", strings.Replace(form(""), "/v1/files",
			"/v1/batches", 1) + file},
		{"a JSON body", "POST /v1/batches HTTP/1.1\r\nHost: localhost\r\n" + key +
			"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"},
		{"a header", "GET /v1/batches HTTP/1.1\r\nHost: localhost\r\nX-Slow: "},
		{"a reader", "GET /v1/files/" + large.ID + "/content HTTP/1.1\r\nHost: localhost\r\n" +
			key + "\r\n"},
	} {
		for range each {
			slow.join(d.Listen, k.sent, time.Second)
		}
		t.Logf("%d connections are open in %s", each, k.name)
	}
	tr.Tried = 6 * each
	began := time.Now()

	// Connections to runners and of the admin address have descriptors of their own.
	await(t, 20*time.Second, "that the daemon is ready", func() bool {
		return readyz(admin) == nil
	})
	lines := NewLines("beside", "m", 500)
	id := ""
	await(t, slowLimit, "that another client's batch is taken", func() bool {
		f, err := c.Upload(lines.Content)
		if err != nil {
			return false
		}
		b, err := c.CreateBatch(f.ID, "")
		id = b.ID
		return err == nil
	})
	b := c.AwaitEnd(t, id, slowLimit)
	t.Logf("another client's batch ended after %v", time.Since(began).Round(time.Second))
	c.HTTP.CloseIdleConnections()

	await(t, slowLimit-min(time.Since(began), slowLimit/2),
		"that the slow clients' connections are closed", func() bool {
			return d.Descriptors() < usual+20
		})
	t.Logf("all were ended after %v", time.Since(began).Round(time.Second))
	c.CheckComplete(t, b, lines)
}

// readyz returns why the daemon is not ready; nil: it is.
func readyz(admin string) error {
	client := http.Client{Timeout: 5 * time.Second}
	response, err := client.Get("http://" + admin + "/readyz")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = statusError{"/readyz", Answer{response.StatusCode, response.Header, body}}
	}
	return err
}

// idlers are connections that send single bytes at intervals and do not read.
type idlers struct {
	connections []net.Conn
	left        chan struct{}
	all         sync.WaitGroup
}

func newIdlers(t *testing.T) *idlers {
	c := &idlers{left: make(chan struct{})}
	t.Cleanup(func() {
		close(c.left)
		for _, conn := range c.connections {
			conn.Close()
		}
		c.all.Wait()
	})
	return c
}

func (s *idlers) join(address, sent string, every time.Duration) {
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return // refused, which is allowed
	}
	conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	s.connections = append(s.connections, conn)
	s.all.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for _, err := io.WriteString(conn, sent); err == nil; _, err = io.WriteString(conn, "x") {
			select {
			case <-tick.C:
			case <-s.left:
				return
			}
		}
	})
}

// whileAlive returns a context that ends with the test or the daemon's process.
func whileAlive(t *testing.T, d *Daemon) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	p := d.current()
	go func() {
		select {
		case <-p.Ended:
		case <-ctx.Done():
		}
		cancel()
	}()
	return ctx
}

// A line as long as a file takes no more memory than a short one, and the error names it.
func TestChaosOneLongLine(t *testing.T) {
	long(t, "a fault of the suite of chaos")
	t.Parallel()
	tr := begin(t, "clients: a line of 199 MB")
	stub := NewStub(t, "m")
	d := tr.Watch(NewDaemon(t, Options{Upstreams: []string{stub.URL}, MaxMemory: maxMemory}))
	ctx := whileAlive(t, d)
	size := sized[int64](100<<20, 199_000_000)
	var all sync.WaitGroup
	for range sized(2, 6) {
		tr.Tried++
		all.Go(func() {
			c := d.Client()
			var f File
			err := retry(ctx, func() error { return uploadLongLine(c, size, &f) })
			if refused := (statusError{}); errors.As(err, &refused) && refused.answer.Status < 500 {
				if !strings.Contains(string(refused.answer.Body), "line 1") {
					t.Errorf("the refusal does not name the line: %v", err)
				}
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			b, err := c.CreateBatch(f.ID, "")
			if err != nil {
				t.Error(err)
				return
			}
			if b = c.AwaitEnd(t, b.ID, 20*time.Second); b.Status != "failed" || b.Errors == nil ||
				orZero(b.Errors.Data[0].Line) != 1 {
				t.Errorf("the batch of one long line is %s, %+v", b.Status, b.Errors)
			}
		})
	}
	all.Wait()
	if peak := d.Peak(); peak > 256*MiB {
		t.Errorf("lines of %d MB took %d MiB", size/1e6, peak/MiB)
	}
}

func uploadLongLine(c *Client, size int64, f *File) error {
	kind, frame := Form([][2]string{{"purpose", "batch"}},
		"input.jsonl", []byte(strings.TrimSuffix(line("long"), `]}}`)+`"`))
	at := bytes.LastIndex(frame, []byte("\r\n--"))
	body := io.MultiReader(bytes.NewReader(frame[:at]), io.LimitReader(xs{}, size),
		bytes.NewReader(frame[at:]))
	return c.json("POST", "/v1/files", kind, body, f)
}

// xs is an endless reader of the letter x.
type xs struct{}

func (xs) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// Many concurrent uploads are accepted, or refused with Retry-After, and all succeed in the end.
func TestChaosManyUploads(t *testing.T) {
	long(t, "a fault of the suite of chaos")
	t.Parallel()
	tr := begin(t, "clients: concurrent uploads")
	stub := NewStub(t, "m")
	d := tr.Watch(NewDaemon(t, Options{Upstreams: []string{stub.URL}, MaxMemory: maxMemory}))
	n := sized(200, 1000)
	tr.Tried = n
	lines := NewLines("many", "m", 500)
	kind, form := Form([][2]string{{"purpose", "batch"}}, "input.jsonl", lines.Content)
	ctx := whileAlive(t, d)
	halfway, stop := context.WithTimeout(ctx, 3*time.Second) // refused uploads do not arrive
	defer stop()
	var standing, refusals atomic.Int64
	arrive := func() {
		if standing.Add(1) == int64(n) {
			stop()
		}
		<-halfway.Done()
	}
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			c := d.Client()
			var f File
			first := true
			err := retry(ctx, func() error {
				body := io.Reader(bytes.NewReader(form))
				if first { // all are in the middle of their first upload at once
					first = false
					body = io.MultiReader(bytes.NewReader(form[:len(form)/2]), &meeting{
						arrive}, bytes.NewReader(form[len(form)/2:]))
				}
				err := c.json("POST", "/v1/files", kind, body, &f)
				if err != nil {
					refusals.Add(1)
					time.Sleep(200 * time.Millisecond)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
			c.HTTP.CloseIdleConnections()
		})
	}
	all.Wait()
	if files := listAll(t, d.Client(), "/v1/files?limit=10000"); len(files) != n {
		t.Errorf("%d files are listed, %d were uploaded", len(files), n)
	}
	if peak := d.Peak(); peak > 256*MiB {
		t.Errorf("%d concurrent uploads took %d MiB", n, peak/MiB)
	}
	t.Logf("%d uploads were refused with Retry-After", refusals.Load())
}

// meeting is an empty reader. Reading it reports the arrival.
type meeting struct{ arrive func() }

func (m *meeting) Read([]byte) (int, error) {
	m.arrive()
	return 0, io.EOF
}

// Listeners are served or refused with Retry-After, and each served one receives the end of the
// batch.
func TestChaosManyListeners(t *testing.T) {
	long(t, "a fault of the suite of chaos")
	t.Parallel()
	tr := begin(t, "clients: event streams")
	stub := NewStub(t, "m")
	stub.MaxDelay = 50 * time.Millisecond
	d := tr.Watch(NewDaemon(t, Options{Upstreams: []string{stub.URL}, Set: small,
		MaxMemory: maxMemory}))
	c := d.Client()
	lines := NewLines("heard", "m", 3000)
	b := c.Submit(t, lines.Content, "")
	n := sized(800, 5000)
	tr.Tried = n
	var served, refused, dropped, done atomic.Int64
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			listener := d.Client()
			defer listener.HTTP.CloseIdleConnections()
			answer, err := listener.Do("GET", "/v1/batches/"+b.ID+"/events", "", nil)
			switch {
			case err == nil && answer.Status == http.StatusOK:
				served.Add(1)
				if bytes.Contains(answer.Body, []byte("event: done")) {
					done.Add(1)
				}
			case err == nil && (answer.Status == http.StatusTooManyRequests ||
				answer.Status == http.StatusServiceUnavailable) && answer.Header.Get(
				"Retry-After") != "":
				refused.Add(1)
			case dropped.Add(1) == 1:
				t.Errorf("a listener got status %d, %v", answer.Status, err)
			}
		})
	}
	err := retry(whileAlive(t, d), func() error { _, err := c.Batch(b.ID); return err })
	if err != nil {
		t.Errorf("a request beside the listeners: %v", err)
	}
	c.CheckComplete(t, c.AwaitEnd(t, b.ID, time.Minute), lines)
	all.Wait()
	if done.Load() != served.Load() || served.Load() < 100 {
		t.Errorf("%d listeners were served, %d received the end, %d were refused", served.Load(),
			done.Load(), refused.Load())
	}
	t.Logf("%d listeners were served, %d refused with Retry-After, %d dropped", served.Load(),
		refused.Load(), dropped.Load())
}

// The size of options is limited, and slow readers of listings of batches with large options do not
// increase the memory.
func TestChaosLargeOptions(t *testing.T) {
	long(t, "a fault of the suite of chaos")
	t.Parallel()
	tr := begin(t, "clients: large options, slow readers of listings")
	stub := NewStub(t, "m")
	d := tr.Watch(NewDaemon(t, Options{Upstreams: []string{stub.URL},
		Set: append([]string{"api.unknown_models=wait"}, small...), MaxMemory: maxMemory}))
	c := d.Client()
	f, err := c.Upload(NewLines("options", "nobody", 1).Content)
	if err != nil {
		t.Fatal(err)
	}
	options := func(size int) string {
		return fmt.Sprintf(`{"defaults":{"note":%q}}`, strings.Repeat("x", size))
	}
	for range sized(3, 100) {
		tr.Tried++
		_, err := c.CreateBatch(f.ID, options(1_000_000))
		refused := statusError{}
		if !errors.As(err, &refused) || refused.answer.Status < 400 ||
			refused.answer.Status >= 500 {
			t.Fatalf("options of 1 MB: %v", err)
		}
	}
	for range 100 {
		tr.Tried++
		if _, err := c.CreateBatch(f.ID, options(60_000)); err != nil {
			t.Fatalf("options of 60 kB: %v", err)
		}
	}
	answer, err := c.Do("GET", "/v1/batches?limit=100", "", nil)
	if err != nil || answer.Status != http.StatusOK || len(answer.Body) > MiB {
		t.Errorf("a listing of 100 batches: status %d, %d bytes, %v", answer.Status,
			len(answer.Body), err)
	}
	slow := newIdlers(t)
	for range sized(50, 300) {
		slow.join(d.Listen, "GET /v1/batches?limit=100 HTTP/1.1\r\nHost: localhost\r\n\r\n",
			time.Minute)
	}
	for range 10 {
		if err := retry(whileAlive(t, d), func() error {
			_, err := c.Do("GET", "/v1/batches?limit=100", "", nil)
			return err
		}); err != nil {
			t.Error(err)
		}
	}
	if peak := d.Peak(); peak > 256*MiB {
		t.Errorf("listings took %d MiB", peak/MiB)
	}
}

// A web page cannot use a daemon without keys through its visitor's browser.
func TestChaosWebPages(t *testing.T) {
	long(t, "a fault of the suite of chaos")
	t.Parallel()
	tr := begin(t, "clients: web pages of others")
	stub := NewStub(t, "m")
	admin := freeAddress(t)
	d := tr.Watch(NewDaemon(t, Options{Upstreams: []string{stub.URL}, Admin: admin, Set: small}))
	c := d.Client()
	const evil = "http://evil.example"
	kind, form := Form([][2]string{{"purpose", "batch"}}, "input.jsonl", []byte(line("a")))
	create := `{"input_file_id":"file-x","endpoint":"/v1/chat/completions","completion_window":"24h"}`
	_, port, _ := net.SplitHostPort(d.Listen)
	for _, page := range []struct {
		name, url, method, path, kind, body, host string
		header                                    []string
		ours                                      bool // is answered as any request
	}{
		{name: "a form of another origin", method: "POST", path: "/v1/files", kind: kind,
			body: string(form), header: []string{"Origin", evil}},
		{name: "a form of a hidden origin", method: "POST", path: "/v1/files", kind: kind,
			body: string(form), header: []string{"Origin", "null"}},
		{name: "a form, as the browser reports it", method: "POST", path: "/v1/files", kind: kind,
			body: string(form), header: []string{"Sec-Fetch-Site", "cross-site"}},
		{name: "JSON as text", method: "POST", path: "/v1/batches", kind: "text/plain",
			body: create},
		{name: "JSON as a form", method: "POST", path: "/v1/batches",
			kind: "application/x-www-form-urlencoded", body: create},
		{name: "JSON of another origin", method: "POST", path: "/v1/batches",
			kind: "application/json", body: create, header: []string{"Origin", evil}},
		{name: "a name that leads here", method: "GET", path: "/v1/files", host: "evil.example:" +
			port},
		{name: "a name that leads here, uploading", method: "POST", path: "/v1/files", kind: kind,
			body: string(form), host: "evil.example:" + port},
		{name: "a foreign name of the profiles", url: "http://" + admin,
			method: "GET", path: "/debug/pprof/", host: "evil.example"},
		{name: "a foreign name of the metrics", url: "http://" + admin,
			method: "GET", path: "/metrics", host: "evil.example"},
		{name: "curl", method: "GET", path: "/v1/files", ours: true},
		{name: "localhost", method: "GET", path: "/v1/files", host: "localhost:" + port,
			ours: true},
		{name: "a page of ours", method: "GET", path: "/v1/files", header: []string{"Origin",
			d.URL}, ours: true},
	} {
		tr.Tried++
		url := page.url
		if url == "" {
			url = d.URL
		}
		request, err := http.NewRequestWithContext(t.Context(), page.method, url+page.path,
			strings.NewReader(page.body))
		if err != nil {
			t.Fatal(err)
		}
		if page.host != "" {
			request.Host = page.host
		}
		if page.kind != "" {
			request.Header.Set("Content-Type", page.kind)
		}
		for pair := range slices.Chunk(page.header, 2) {
			request.Header.Set(pair[0], pair[1])
		}
		response, err := c.HTTP.Do(request)
		if err != nil {
			t.Fatalf("%s: %v", page.name, err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if taken := response.StatusCode < 400; taken != page.ours || response.StatusCode >= 500 {
			t.Errorf("%s: status %d: %.200s", page.name, response.StatusCode, body)
		}
		if !page.ours && strings.Contains(string(body), "file-x") {
			t.Errorf("%s: the request was processed: %.200s", page.name, body)
		}
	}
	wantNothingLeft(t, d)
}
