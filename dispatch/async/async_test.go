package async

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"

	servers "github.com/tidefill/tidefill/internal/testservers/redis"
)

const runnerName = "gpu-1"

// workerProcess is the environment variable by which this program is a worker until SIGTERM: REDIS
// ENGINE.
const workerProcess = "TIDEFILL_TEST_WORKER"

func TestMain(m *testing.M) {
	if at, is := os.LookupEnv(workerProcess); is {
		addr, engine, _ := strings.Cut(at, " ")
		w, err := NewWorker(WorkerConfig{Prefix: "t", Runner: runnerName, Engine: engine,
			Concurrency: 16, Drain: time.Second, DialTimeout: time.Second},
			redis.NewClient(&redis.Options{Addr: addr}), slog.New(slog.DiscardHandler), nil)
		if err == nil {
			ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
			err = w.Run(ctx)
			stop()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func connect(t testing.TB, server *servers.Server) redis.UniversalClient {
	client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1,
		DialTimeout: time.Second, ReadTimeout: time.Second})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// engine answers each request with what it was sent, and counts.
type engine struct {
	*httptest.Server
	got  atomic.Int64
	hold atomic.Pointer[chan struct{}] // requests wait for its end

	mu   sync.Mutex
	seen []string
}

func serveEngine(t testing.TB) *engine {
	e := &engine{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		e.got.Add(1)
		e.mu.Lock()
		e.seen = append(e.seen, string(body))
		e.mu.Unlock()
		if hold := e.hold.Load(); hold != nil {
			select {
			case <-*hold:
			case <-r.Context().Done():
				return
			}
		}
		w.Header().Set("X-Seen", r.Header.Get("X-Given"))
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, body)
	}))
	t.Cleanup(e.Close)
	return e
}

// work runs a worker until stop is called.
func work(t testing.TB, client redis.UniversalClient, e *engine, n int) (stop func()) {
	t.Helper()
	w, err := NewWorker(WorkerConfig{Prefix: "t", Runner: runnerName, Engine: e.URL + "/base/v1",
		Concurrency: n, Drain: time.Second, DialTimeout: time.Second}, client,
		slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(stop)
	return stop
}

// startProcess starts a worker as a process of its own.
func startProcess(t *testing.T, server *servers.Server, e *engine) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerProcess+"="+server.Addr+" "+e.URL)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func newCarrier(client redis.UniversalClient) *Carrier {
	//nolint:forcetypeassert // the only type
	return NewQueues(client, "t").Carrier(runnerName).(*Carrier)
}

type result struct {
	body string
	sent bool
	err  error
}

// carry sends a request and returns what comes of it.
func carry(ctx context.Context, c *Carrier, body string, deadline time.Time) result {
	r, _ := http.NewRequestWithContext(ctx, http.MethodPost,
		"http://engine/prefix/v1/chat/completions", strings.NewReader(body))
	r.Header.Set("X-Given", "yes")
	answer, sent, err := c.Carry(r, deadline)
	if err != nil {
		return result{sent: sent, err: err}
	}
	got, err := io.ReadAll(answer.Body)
	return result{string(got), sent, err}
}

// carryAll sends n requests at once. Their results follow in any order.
func carryAll(ctx context.Context, c *Carrier, n int) <-chan result {
	results := make(chan result, n)
	for i := range n {
		go func() { results <- carry(ctx, c, fmt.Sprint("body ", i), time.Time{}) }()
	}
	return results
}

// expectAll reports requests without the one answer of their own.
func expectAll(t *testing.T, results <-chan result, n int) {
	t.Helper()
	seen := map[string]int{}
	for range n {
		select {
		case r := <-results:
			if r.err != nil {
				t.Errorf("a request failed: %v (sent %v)", r.err, r.sent)
			}
			seen[r.body]++
		case <-time.After(40 * time.Second):
			t.Fatalf("%d of %d requests were answered after 40 s", len(seen), n)
		}
	}
	for i := range n {
		if want := fmt.Sprint("POST /v1/chat/completions body ", i); seen[want]+
			seen["POST /base"+want[5:]] != 1 {
			t.Errorf("%q: got %d answers, want 1", want, seen[want])
		}
	}
}

func await(t *testing.T, what string, limit time.Duration, done func() bool) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for end := time.After(limit); !done(); {
		select {
		case <-end:
			t.Fatalf("waited %v for %s", limit, what)
		case <-again.C:
		}
	}
}

func TestAnswersComeBackAsTheyAre(t *testing.T) {
	t.Parallel()
	server := servers.Start(t)
	client := connect(t, server)
	e := serveEngine(t)
	work(t, client, e, 4)
	c := newCarrier(client)
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost,
		"http://engine/prefix/v1/embeddings", strings.NewReader("{\"a\":\n1}\x00"))
	r.Header.Set("X-Given", "header")
	answer, sent, err := c.Carry(r, time.Now())
	if err != nil || !sent {
		t.Fatalf("got %v, sent %v", err, sent)
	}
	body, err := io.ReadAll(answer.Body)
	if want := "POST /base/v1/embeddings {\"a\":\n1}\x00"; string(body) != want || err != nil ||
		answer.StatusCode != http.StatusTeapot || answer.Header.Get("X-Seen") != "header" ||
		answer.ContentLength != int64(len(want)) {
		t.Errorf("got %q (%v), status %d, header %v; want %q", body, err, answer.StatusCode,
			answer.Header, want)
	}
}

func TestWithoutWorkerNothingIsSent(t *testing.T) {
	t.Parallel()
	c := newCarrier(connect(t, servers.Start(t)))
	if r := carry(t.Context(), c, "x", time.Time{}); !errors.Is(r.err, errNoWorker) || r.sent {
		t.Errorf("got %+v, want that there is no worker", r)
	}
}

func TestRedisAwayFailsUnsent(t *testing.T) {
	t.Parallel()
	server := servers.Start(t)
	c := newCarrier(connect(t, server))
	server.Kill()
	if r := carry(t.Context(), c, "x", time.Time{}); r.err == nil || r.sent {
		t.Errorf("got %+v, want an error of a request that was not sent", r)
	}
}

// Redis is lost, or its items are, under a request that the engine has. Nobody knows what becomes
// of it then, so it counts as sent.
func TestLostItems(t *testing.T) {
	for name, fault := range map[string]func(*servers.Server){
		"flushed": func(s *servers.Server) { s.Do("FLUSHALL") }, "killed": (*servers.Server).Kill,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := servers.Start(t)
			e := serveEngine(t)
			hold := make(chan struct{})
			defer close(hold)
			e.hold.Store(&hold)
			work(t, connect(t, server), e, 1)
			ctx, cancel := context.WithCancelCause(t.Context())
			result := carryAll(ctx, newCarrier(connect(t, server)), 1)
			await(t, "the request", 10*time.Second, func() bool { return e.got.Load() == 1 })
			fault(server)
			evicted := errors.New("evicted")
			cancel(evicted)
			if r := <-result; !errors.Is(r.err, evicted) || !r.sent {
				t.Errorf("got %+v, want that the engine may have the request", r)
			}
		})
	}
}

// Requests that come while Redis is away are not sent, also those of a carrier that was in use
// before.
func TestOutageFailsUnsent(t *testing.T) {
	t.Parallel()
	server := servers.Start(t)
	e := serveEngine(t)
	hold := make(chan struct{})
	defer close(hold)
	e.hold.Store(&hold)
	work(t, connect(t, server), e, 1)
	c := newCarrier(connect(t, server))
	ctx, cancel := context.WithCancel(t.Context())
	first := carryAll(ctx, c, 1)
	await(t, "the request", 10*time.Second, func() bool { return e.got.Load() == 1 })
	server.Kill()
	await(t, "a call without an answer", 20*time.Second, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return !c.up
	})
	others := carryAll(t.Context(), c, 3)
	for range 3 {
		if r := <-others; r.err == nil || r.sent {
			t.Errorf("got %+v, want an error of a request that was not sent", r)
		}
	}
	cancel()
	<-first
}

// lossy loses the replies to scripts that Redis has run, from some time on.
type lossy struct {
	scripts []*redis.Script
	loses   atomic.Bool
}

func (*lossy) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*lossy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l *lossy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if l.loses.Load() && slices.ContainsFunc(l.scripts, func(s *redis.Script) bool {
			return cmd.Args()[1] == s.Hash()
		}) {
			err = io.ErrUnexpectedEOF
			cmd.SetErr(err)
		}
		return err
	}
}

// The replies to a request's offers are lost, and the engine gets it once. If its answer does not
// come in time it counts as sent, also if the reply to its withdrawal is lost.
func TestLostReplies(t *testing.T) {
	for name, c := range map[string]struct {
		scripts []*redis.Script
		hangs   bool // the engine
	}{
		"answered":             {[]*redis.Script{offerScript}, false},
		"offer":                {[]*redis.Script{offerScript}, true},
		"offer and withdrawal": {[]*redis.Script{offerScript, withdrawScript}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := servers.Start(t)
			e := serveEngine(t)
			hold := make(chan struct{})
			defer close(hold)
			work(t, connect(t, server), e, 1)
			client, replies := connect(t, server), &lossy{scripts: c.scripts}
			client.AddHook(replies)
			carrier := newCarrier(client)
			expectAll(t, carryAll(t.Context(), carrier, 1), 1) // Redis knows the script now
			replies.loses.Store(true)
			if c.hangs {
				e.hold.Store(&hold)
			}
			r := carry(t.Context(), carrier, "x", time.Time{})
			if n := e.got.Load(); (r.err != nil) != c.hangs || !r.sent || n != 2 {
				t.Errorf("got %+v, and the engine got %d requests, want 2", r, n)
			}
		})
	}
}

func TestEarlyDeadlinesFirst(t *testing.T) {
	t.Parallel()
	client := connect(t, servers.Start(t))
	e := serveEngine(t)
	hold := make(chan struct{})
	e.hold.Store(&hold)
	work(t, client, e, 1)
	c := newCarrier(client)
	var all sync.WaitGroup
	send := func(body string, deadline time.Time) {
		all.Go(func() { carry(t.Context(), c, body, deadline) })
	}
	send("first", time.Now())
	await(t, "the first request", 10*time.Second, func() bool { return e.got.Load() == 1 })
	send("none", time.Time{})
	for i := range 5 {
		send(fmt.Sprint(5-i), time.Now().Add(time.Duration(5-i)*time.Hour))
	}
	queue := newRunnerQueue(client, "t", runnerName)
	await(t, "the others in the queue", 10*time.Second, func() bool {
		return client.ZCard(t.Context(), queue.keys[0]).Val() == 6
	})
	close(hold)
	all.Wait()
	if got := strings.Join(e.seen, " "); got != "first 1 2 3 4 5 none" {
		t.Errorf("the engine got %s, want them by deadline", got)
	}
}

func TestWithdrawnRequestsEndAtTheEngine(t *testing.T) {
	t.Parallel()
	client := connect(t, servers.Start(t))
	e := serveEngine(t)
	hold := make(chan struct{})
	defer close(hold)
	e.hold.Store(&hold)
	stop := work(t, client, e, 1)
	c := newCarrier(client)
	ctx, cancel := context.WithCancelCause(t.Context())
	results := carryAll(ctx, c, 3)
	await(t, "the first request", 10*time.Second, func() bool { return e.got.Load() == 1 })
	evicted := errors.New("evicted")
	cancel(evicted)
	sent := 0
	for range 3 {
		r := <-results
		if !errors.Is(r.err, evicted) {
			t.Errorf("got %v, want the cause", r.err)
		}
		if r.sent {
			sent++
		}
	}
	if sent != 1 {
		t.Errorf("%d requests count as sent, want 1", sent)
	}
	began := time.Now()
	stop()
	if took := time.Since(began); took > 900*time.Millisecond {
		t.Errorf("the worker stopped after %v, want at once: nobody waits for the request", took)
	}
	if n := e.got.Load(); n != 1 {
		t.Errorf("the engine got %d requests, want 1", n)
	}
}

func TestStoppedWorkerPutsBackWhatItHolds(t *testing.T) {
	t.Parallel()
	server := servers.Start(t)
	e := serveEngine(t)
	hold := make(chan struct{})
	e.hold.Store(&hold)
	stop := work(t, connect(t, server), e, 4)
	c := newCarrier(connect(t, server))
	results := carryAll(t.Context(), c, 8)
	await(t, "requests", 10*time.Second, func() bool { return e.got.Load() == 4 })
	work(t, connect(t, server), e, 4)
	await(t, "all requests", 10*time.Second, func() bool { return e.got.Load() == 8 })
	e.hold.Store(nil)
	stop() // its four go to the other worker
	close(hold)
	expectAll(t, results, 8)
}

// Kill -9 of a worker: its leases end, and the other worker answers all.
func TestKilledWorker(t *testing.T) {
	t.Parallel()
	server := servers.Start(t)
	e := serveEngine(t)
	hold := make(chan struct{})
	e.hold.Store(&hold)
	process := startProcess(t, server, e)
	c := newCarrier(connect(t, server))
	results := carryAll(t.Context(), c, 10)
	await(t, "requests", 20*time.Second, func() bool { return e.got.Load() == 10 })
	work(t, connect(t, server), e, 16)
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	e.hold.Store(nil)
	expectAll(t, results, 10)
}

// A suspended worker loses its leases, and what it answers later is dropped.
func TestSuspendedWorkerIsFenced(t *testing.T) {
	t.Parallel()
	server := servers.Start(t)
	e := serveEngine(t)
	hold := make(chan struct{})
	e.hold.Store(&hold)
	process := startProcess(t, server, e)
	c := newCarrier(connect(t, server))
	results := carryAll(t.Context(), c, 10)
	await(t, "requests", 20*time.Second, func() bool { return e.got.Load() == 10 })
	if err := process.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	close(hold) // its answers are in its sockets
	work(t, connect(t, server), e, 16)
	expectAll(t, results, 10)
	for _, s := range []syscall.Signal{syscall.SIGCONT, syscall.SIGTERM} {
		if err := process.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := process.Wait(); err != nil { // it has returned what it held
		t.Fatal(err)
	}
	client := connect(t, server)
	if n := client.LLen(t.Context(), newRunnerQueue(client, "t", runnerName).answers+
		c.id).Val(); n != 0 {
		t.Errorf("%d late answers were taken, want 0", n)
	}
	expectAll(t, carryAll(t.Context(), c, 5), 5)
}

// The only worker is killed: its requests end as those of an engine that died.
func TestLastWorkerKilled(t *testing.T) {
	t.Parallel()
	server := servers.Start(t)
	e := serveEngine(t)
	hold := make(chan struct{})
	defer close(hold)
	e.hold.Store(&hold)
	process := startProcess(t, server, e)
	c := newCarrier(connect(t, server))
	results := carryAll(t.Context(), c, 20) // 16 are taken
	await(t, "requests", 20*time.Second, func() bool { return e.got.Load() == 16 })
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	sent := 0
	for range 20 {
		r := <-results
		if r.err == nil {
			t.Errorf("got an answer: %+v", r)
		}
		if r.sent {
			sent++
		}
	}
	if sent != 16 {
		t.Errorf("%d requests count as sent, want 16", sent)
	}
}

// Redis is flushed, or killed and empty, again and again: each request has its one answer.
func TestFlushedRedis(t *testing.T) {
	for name, fault := range map[string]func(*servers.Server){
		"flushed": func(s *servers.Server) { s.Do("FLUSHALL") },
		"killed": func(s *servers.Server) {
			s.Kill()
			s.Restart()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := servers.Start(t)
			e := serveEngine(t)
			hold := make(chan struct{})
			e.hold.Store(&hold)
			work(t, connect(t, server), e, 4)
			client := connect(t, server)
			c, queue := newCarrier(client), newRunnerQueue(client, "t", runnerName)
			results := carryAll(t.Context(), c, 12)
			await(t, "requests", 10*time.Second, func() bool { return e.got.Load() == 4 })
			fault(server)
			await(t, "all requests to be offered again", 20*time.Second, func() bool {
				return client.ZCard(t.Context(), queue.keys[0]).Val()+
					client.ZCard(t.Context(), queue.keys[2]).Val() == 12
			})
			fault(server)
			close(hold)
			expectAll(t, results, 12)
		})
	}
}

// A dispatcher that shows no sign of life any more loses its items.
func TestItemsOfADeadDispatcherAreDropped(t *testing.T) {
	t.Parallel()
	client := connect(t, servers.Start(t))
	queue := newRunnerQueue(client, "t", runnerName)
	ctx := t.Context()
	if _, err := queue.take(ctx, "w", 1, time.Minute, "t0"); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		served, err := queue.offer(ctx, "dead", 300*time.Millisecond, itemID("dead", uint64(i)),
			time.Now(), []byte("x"))
		if err != nil || !served {
			t.Fatalf("offer: %v, served %v", err, served)
		}
	}
	held, err := queue.take(ctx, "w", 1, time.Minute, "t1")
	if err != nil || len(held) != 1 {
		t.Fatalf("took %v (%v), want one", held, err)
	}
	await(t, "the end of the dispatcher's time", 10*time.Second, func() bool {
		until, err := client.ZScore(ctx, queue.keys[4], "dead").Result()
		return err == nil && client.Time(ctx).Val().UnixMilli() > int64(until)
	})
	if more, err := queue.take(ctx, "w", 9, time.Minute, "t2"); err != nil || len(more) != 0 {
		t.Errorf("took %v (%v) of a dead dispatcher", more, err)
	}
	gone, err := queue.renew(ctx, "w", time.Minute, time.Minute, held)
	if err != nil || len(gone) != 1 {
		t.Errorf("renewed: %v (%v), want that the item is gone", gone, err)
	}
	if n := client.HLen(ctx, queue.keys[1]).Val(); n != 0 {
		t.Errorf("%d fields of items are left, want 0", n)
	}
}

// A cluster takes the scripts too: the keys of a runner are on one node.
func TestRedisCluster(t *testing.T) {
	t.Parallel()
	var addrs []string
	for _, s := range servers.StartCluster(t) {
		addrs = append(addrs, s.Addr)
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	t.Cleanup(func() { _ = client.Close() })
	work(t, client, serveEngine(t), 4)
	expectAll(t, carryAll(t.Context(), newCarrier(client), 20), 20)
}

// Carriers of one runner share its queue, and each gets the answers of its own requests. Nothing is
// kept of one that is not used any more, since runners come and go.
func TestCarriersOfOneRunner(t *testing.T) {
	t.Parallel()
	client := connect(t, servers.Start(t))
	work(t, client, serveEngine(t), 4)
	q := NewQueues(client, "t")
	var all sync.WaitGroup
	for range 3 {
		c := q.Carrier(runnerName).(*Carrier) //nolint:forcetypeassert // the only type
		all.Go(func() { expectAll(t, carryAll(t.Context(), c, 20), 20) })
	}
	all.Wait()
	unused := weak.Make(q.Carrier("left").(*Carrier)) //nolint:forcetypeassert // the only type
	runtime.GC()
	if unused.Value() != nil {
		t.Error("a carrier that nobody uses is kept")
	}
	runtime.KeepAlive(q)
}

// BenchmarkCarry measures requests through Redis, a worker and an engine that answers at once.
func BenchmarkCarry(b *testing.B) {
	client := connect(b, servers.Start(b))
	work(b, client, serveEngine(b), 256)
	c := newCarrier(client)
	b.SetParallelism(64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if r := carry(b.Context(), c, "body", time.Time{}); r.err != nil {
				b.Error(r.err)
			}
		}
	})
}
