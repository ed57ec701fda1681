package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func testGate(most int, wait time.Duration, share float64) *gate {
	return &gate{what: "things", key: "api.max_things", most: most, wait: wait,
		share: func() float64 { return share }}
}

func TestGateLimitsAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(3, 10*time.Second, 1)
		var busy, peak, refused atomic.Int32
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				leave, err := g.enter(t.Context(), "a")
				if err != nil {
					refused.Add(1)
					return
				}
				peak.Store(max(peak.Load(), busy.Add(1)))
				time.Sleep(2 * time.Second)
				busy.Add(-1)
				leave()
			})
		}
		all.Wait()
		// Three at once for two seconds each; five rounds start within the ten seconds of waiting.
		if peak.Load() != 3 || refused.Load() > 5 {
			t.Errorf("%d at once, %d refused", peak.Load(), refused.Load())
		}
		if g.busy != 0 || len(g.tenants) != 0 || g.waiting.Len() != 0 || len(g.queued) != 0 {
			t.Errorf("left: %d busy, tenants %v, %d waiting, %v", g.busy, g.tenants,
				g.waiting.Len(), g.queued)
		}
	})
}

// A tenant that came first does not use up the gate.
func TestGateLeavesAShareToOtherTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(4, time.Minute, 0.5)
		var leaves []func()
		for range 2 {
			leave, err := g.enter(t.Context(), "greedy")
			if err != nil {
				t.Fatal(err)
			}
			leaves = append(leaves, leave)
		}
		third := make(chan error, 1)
		go func() {
			leave, err := g.enter(t.Context(), "greedy")
			if err == nil {
				leave()
			}
			third <- err
		}()
		synctest.Wait()
		start := time.Now()
		leave, err := g.enter(t.Context(), "modest")
		if err != nil || time.Since(start) > 0 {
			t.Errorf("another tenant waited for %v: %v", time.Since(start), err)
		}
		leave()
		synctest.Wait()
		select {
		case <-third:
			t.Error("a tenant has more than its share")
		default:
		}
		leaves[0]()
		if err := <-third; err != nil {
			t.Error(err)
		}
		leaves[1]()
	})
}

// Waiting requests of one tenant do not use up the connections.
func TestGateLimitsTheWaitingRequestsOfATenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(2, time.Minute, 0.5)
		leave, err := g.enter(t.Context(), "greedy")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		for range maxQueued {
			go g.enter(ctx, "greedy")
		}
		synctest.Wait()
		start := time.Now()
		if _, err := g.enter(t.Context(), "greedy"); err == nil ||
			answerTo(err).Status != http.StatusTooManyRequests || time.Since(start) > 0 {
			t.Errorf("a further request got %v after %v", err, time.Since(start))
		}
		if _, err := g.enter(t.Context(), "modest"); err != nil {
			t.Errorf("another tenant got %v", err)
		}
		cancel()
		synctest.Wait()
		leave()
		if g.waiting.Len() != 0 || len(g.queued) != 0 {
			t.Errorf("left: %d waiting, %v", g.waiting.Len(), g.queued)
		}
	})
}

func TestGateRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(2, time.Second, 0.5)
		if _, err := g.enter(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			tenant string
			status int
		}{{"a", http.StatusTooManyRequests}, {"b", http.StatusOK},
			{"c", http.StatusServiceUnavailable}} {
			start := time.Now()
			_, err := g.enter(t.Context(), test.tenant)
			if err == nil {
				if test.status != http.StatusOK {
					t.Errorf("%s was admitted", test.tenant)
				}
				continue
			}
			if e := answerTo(err); e.Status != test.status || e.RetryAfter == 0 || time.Since(
				start) != time.Second {
				t.Errorf("%s got %+v after %v, want %d", test.tenant, e, time.Since(
					start), test.status)
			}
		}
		left, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("left")
		cancel(cause)
		if _, err := g.enter(left, "c"); !errors.Is(err, cause) {
			t.Errorf("a disconnected client got %v", err)
		}
	})
}

// heldUpload starts an upload that pauses; the returned function completes it.
func (s *service) heldUpload(header ...string) (answered <-chan int, finish func()) {
	s.t.Helper()
	form, contentType := encodeForm(s.t, field{name: "purpose", value: "batch"},
		field{name: "file", filename: "in.jsonl", value: line("a")})
	complete := form.String()
	first := len(complete) - 50
	reader, writer := io.Pipe()
	status := make(chan int, 1)
	go func() {
		status <- s.do("POST", "/v1/files", reader, append([]string{"Content-Type", contentType},
			header...)...).status
	}()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		io.WriteString(writer, complete[:first])
	}()
	return status, func() {
		<-sent
		io.WriteString(writer, complete[first:])
		writer.Close()
	}
}

func TestUploadsWait(t *testing.T) {
	s := newService(t, func(c *Config, _ *Deps) { c.MaxRequests = 32 })
	first, finish := s.heldUpload()
	const created = 2 // blobs: the file and its index
	s.eventually("the first upload to start", func() bool { return len(s.stored()) == created })
	second, finishSecond := s.heldUpload()
	waiting := func() bool {
		s.server.gates.uploads.mu.Lock()
		defer s.server.gates.uploads.mu.Unlock()
		return s.server.gates.uploads.waiting.Len() == 1
	}
	s.eventually("the second upload to wait", waiting)
	if now := len(s.stored()); now != created {
		t.Errorf("a waiting upload has created %d blobs", now-created)
	}
	s.get("/v1/files").ok() // which does not wait
	finish()
	finishSecond()
	if a, b := <-first, <-second; a != http.StatusOK || b != http.StatusOK {
		t.Errorf("got %d and %d", a, b)
	}
}

func TestUploadsThatWaitTooLongAreRefused(t *testing.T) {
	s := newService(t, func(c *Config, _ *Deps) {
		c.MaxRequests, c.QueueWait = 32, 50*time.Millisecond
	})
	first, finish := s.heldUpload()
	s.eventually("the first upload to start", func() bool { return len(s.stored()) > 0 })
	a := s.postForm("/v1/files", field{name: "purpose", value: "batch"},
		field{name: "file", filename: "in.jsonl", value: line("a")})
	a.refused(503, "", "busy", "1 uploads", "by api.max_requests")
	if a.header.Get("Retry-After") == "" {
		t.Error("the answer has no Retry-After")
	}
	finish()
	if status := <-first; status != http.StatusOK {
		t.Errorf("the first upload got %d", status)
	}
}

func TestStreamsAreLimited(t *testing.T) {
	keys, err := ParseKeys("a=key-a,b=key-b")
	if err != nil {
		t.Fatal(err)
	}
	s := newService(t, func(c *Config, d *Deps) { c.MaxRequests, d.Keys = 2, keys })
	// Any stream serves.
	s.server.route("/hold", methods{"GET": func(w http.ResponseWriter, r *http.Request) error {
		if err := s.server.moveToGate(w, r, &s.server.gates.streams); err != nil {
			return err
		}
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return nil
	}})
	ctx, cancel := context.WithCancel(t.Context())
	open := func(key string) *http.Response {
		r, err := http.NewRequestWithContext(ctx, "GET", s.url+"/hold", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	for i, want := range []struct {
		key    string
		status int
	}{{"key-a", 200}, {"key-a", 200}, {"key-a", 429}, {"key-b", 200}, {"key-b", 200},
		{"key-b", 503}, {"key-a", 503}} {
		if resp := open(want.key); resp.StatusCode != want.status || want.status != 200 &&
			resp.Header.Get("Retry-After") == "" {
			t.Errorf("stream %d: got %d, want %d", i, resp.StatusCode, want.status)
		}
	}
	cancel()
	s.eventually("the places to be given back", func() bool {
		g := &s.server.gates.streams
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.busy == 0
	})
}

func TestEventStreamsPassTheGate(t *testing.T) {
	s := newService(t, func(c *Config, _ *Deps) { c.MaxRequests = 1 })
	id := s.create(line("a"))["id"].(string)
	s.listen(id)
	s.listen(id)
	s.get("/v1/batches/"+id+"/events").refused(503, "", "busy", "event streams")
	s.get("/v1/batches/" + id).ok() // a stream takes no place of other requests
}

func TestLargeBodiesWait(t *testing.T) {
	s := newService(t, func(c *Config, _ *Deps) { c.QueueWait = 20 * time.Millisecond })
	var leaves []func()
	for range maxLargeBodies {
		leave, err := s.server.gates.bodies.enter(t.Context(), DefaultTenant)
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leave)
	}
	body := fmt.Sprintf(`{"filename":"%s","purpose":"batch","bytes":1,"mime_type":"x"}`,
		strings.Repeat("x", 100)+".jsonl")
	large := body + strings.Repeat(" ", smallBody)
	s.post("/v1/uploads", body).ok()
	s.post("/v1/uploads", large).refused(503, "", "busy", "large JSON bodies")
	leaves[0]()
	s.post("/v1/uploads", large).ok()
}

// Completions of uploads and retries of batches take the memory of an upload each, so they are
// limited.
func TestCopiesWait(t *testing.T) {
	s := newService(t, func(c *Config, _ *Deps) { c.QueueWait = 20 * time.Millisecond })
	content := line("a")
	upload := s.createUpload(len(content), "")
	part := s.addPart(upload, content)
	batch := s.create(line("b"))["id"].(string)
	s.end(batch, []string{`"b"`})
	var leaves []func()
	for range maxCopies {
		leave, err := s.server.gates.copies.enter(t.Context(), DefaultTenant)
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leave)
	}
	s.complete(upload, "", part).refused(503, "", "busy", "completions of uploads")
	s.post("/v1/batches/"+batch+"/retry", "{}", "Idempotency-Key", "k").refused(503, "", "busy",
		"completions of uploads")
	leaves[0]()
	s.complete(upload, "", part).ok()
	s.post("/v1/batches/"+batch+"/retry", "{}", "Idempotency-Key", "k").ok()
}

// A larger limit admits those that wait, and a smaller one applies to those that come.
func TestGateTakesOtherLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate(1, time.Minute, 1)
		enter := func() func() {
			leave, err := g.enter(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			return leave
		}
		first := enter()
		entered := make(chan func())
		go func() { entered <- enter() }()
		synctest.Wait()
		g.configure(2, time.Minute)
		second := <-entered
		g.configure(1, 0)
		first()
		if _, err := g.enter(t.Context(), "a"); err == nil {
			t.Error("a second request is admitted where one may be handled")
		}
		second()
		enter()()
	})
}
