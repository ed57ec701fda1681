package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/sqlite"
)

var testKey = []byte("0123456789abcdef0123456789abcdef")

var testSecret = secretPrefix + base64.StdEncoding.EncodeToString(testKey)

// fast is the pace of tests.
var fast = Pace{Look: 5 * time.Millisecond, Verdicts: 5 * time.Millisecond, Lease: time.Second,
	FirstRetry: 10 * time.Millisecond, LastRetry: 50 * time.Millisecond}

// world is a store with batches, and what is logged.
type world struct {
	t    *testing.T
	db   *sqlite.DB
	next int

	mu  sync.Mutex
	log bytes.Buffer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "meta.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return &world{t: t, db: db}
}

// Write takes the log.
func (w *world) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(p)
}

func (w *world) logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

// start runs a notifier of the endpoints until stop is called, which waits for it.
func (w *world) start(node string, endpoints ...Endpoint) (
	registry *prometheus.Registry, stop func()) {
	w.t.Helper()
	registry = prometheus.NewRegistry()
	for i := range endpoints {
		endpoints[i].SecretEnv = "SECRET"
	}
	n, err := New(endpoints, Deps{Store: w.db, Progress: w.db, Node: node, Pace: fast,
		Getenv:     env{"SECRET": testSecret}.get,
		Registerer: registry, Logger: slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{
			Level: slog.LevelDebug}))})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("notifier %s: %v", node, err)
		}
	})
	w.t.Cleanup(stop)
	return registry, stop
}

// begun waits until the endpoint has a cursor: what happens from now on is delivered.
func (w *world) begun(endpoint string) {
	w.t.Helper()
	w.await("the endpoint "+endpoint+" begins", func() bool {
		cursor, err := w.db.NoticeCursor(w.t.Context(), endpoint)
		return err == nil && cursor != ""
	})
}

func (w *world) await(what string, is func() bool) {
	w.t.Helper()
	for limit := time.Now().Add(30 * time.Second); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(limit) {
			w.t.Fatalf("never: %s; the log:\n%s", what, w.logged())
		}
	}
}

// batch creates a batch in progress.
func (w *world) batch(tenant string) (id string) {
	w.t.Helper()
	w.next++
	id = fmt.Sprintf("batch_%03d", w.next)
	err := w.db.CreateBatch(w.t.Context(), store.Batch{ID: id, Tenant: tenant,
		State: store.InProgress, CreatedAt: time.Now(), Deadline: time.Now().Add(time.Hour)})
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// end ends a batch.
func (w *world) end(id string, state store.State) {
	w.t.Helper()
	_, err := store.Modify(w.t.Context(), w.db, "", id, func(b *store.Batch) error {
		now := time.Now()
		b.State = state
		b.CompletedAt, b.FailedAt, b.ExpiredAt, b.CancelledAt = now, now, now, now
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// forecast posts verdicts as a dispatcher does.
func (w *world) forecast(id string, verdict store.Verdict) {
	w.t.Helper()
	owner, err := w.db.Register(w.t.Context(), "dispatcher", time.Hour)
	if err == nil {
		err = w.db.PostProgress(w.t.Context(), owner, map[string]store.ProgressPost{id: {
			Progress: store.Progress{Forecast: store.Forecast{Verdict: verdict}, Leads: true}}})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// get is os.Getenv over a map.
func (m env) get(name string) string { return m[name] }

type env map[string]string

// received is what an endpoint got.
type received struct {
	id, event, batch string
	created          int64
}

// receiver is an endpoint that verifies and keeps what it gets.
type receiver struct {
	*httptest.Server
	mu  sync.Mutex
	all []received
	// answer decides what is answered to the nth request, from 1; nil: 200
	answer func(w http.ResponseWriter, r *http.Request, n int)
	count  int
}

func newReceiver(t *testing.T, answer func(http.ResponseWriter, *http.Request, int)) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.take(t, w, q)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) take(t *testing.T, w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	var m struct {
		ID, Object, Type string
		Created          int64 `json:"created_at"`
		Data             struct{ ID string }
	}
	if err == nil {
		err = json.Unmarshal(body, &m)
	}
	mac := hmac.New(sha256.New, testKey)
	fmt.Fprintf(mac, "%s.%s.%s", q.Header.Get("webhook-id"), q.Header.Get("webhook-timestamp"),
		body)
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); err != nil ||
		q.Header.Get("webhook-signature") != want || q.Header.Get("webhook-id") != m.ID ||
		m.Object != "event" || q.Method != http.MethodPost ||
		q.Header.Get("Content-Type") != "application/json" {
		t.Errorf("received %s %v %q, %v", q.Method, q.Header, body, err)
	}
	r.mu.Lock()
	r.all = append(r.all, received{m.ID, m.Type, m.Data.ID, m.Created})
	r.count++
	n := r.count
	r.mu.Unlock()
	if r.answer != nil {
		r.answer(w, q, n)
	}
}

func (r *receiver) got() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// events returns what was received as "batch event", in order, without repetitions of an id.
func (r *receiver) events() (list []string) {
	seen := map[string]bool{}
	for _, e := range r.got() {
		if !seen[e.id] {
			list = append(list, e.batch+" "+strings.TrimPrefix(e.event, "batch."))
		}
		seen[e.id] = true
	}
	return list
}

// delivered waits until nothing is pending for the endpoint.
func (w *world) delivered(endpoint string, r *receiver, want ...string) {
	w.t.Helper()
	w.await(fmt.Sprintf("%s gets %v", endpoint, want), func() bool {
		n, err := w.db.PendingNotices(w.t.Context(), endpoint)
		return err == nil && n == 0 && len(r.events()) >= len(want)
	})
	got := r.events()
	slices.Sort(got) // several are sent at once
	if want = slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
		w.t.Errorf("%s got %v, want %v", endpoint, got, want)
	}
}

func TestEndsOfBatchesAreDelivered(t *testing.T) {
	w, all, some := newWorld(t), newReceiver(t, nil), newReceiver(t, nil)
	before := w.batch("a")
	w.end(w.batch("a"), store.Completed) // before the endpoints exist
	registry, _ := w.start("n", Endpoint{Name: "all", URL: all.URL},
		Endpoint{Name: "some", URL: some.URL + "/x?token=t0ken", Tenants: []string{"b"},
			Events: []string{"batch.failed", "batch.expired"}})
	w.begun("all")
	w.begun("some")
	var want []string
	for _, state := range []store.State{store.Completed, store.Failed, store.Expired,
		store.Cancelled} {
		id, other := w.batch("a"), w.batch("b")
		w.end(id, state)
		w.end(other, state)
		want = append(want, id+" "+string(state), other+" "+string(state))
	}
	w.end(before, store.Completed)
	want = append(want, before+" completed")
	w.await("all are delivered", func() bool { return len(all.events()) == len(want) })
	if got := slices.Sorted(slices.Values(all.events())); !slices.Equal(got,
		slices.Sorted(slices.Values(want))) {
		t.Errorf("got %v, want %v", got, want)
	}
	w.delivered("some", some, want[3], want[5])
	for _, e := range all.got() {
		if age := time.Now().Unix() - e.created; age < 0 || age > 60 {
			t.Errorf("event %+v was created %d s ago", e, age)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{testSecret, string(testKey), "t0ken"} {
		if strings.Contains(w.logged()+fmt.Sprint(families), secret) {
			t.Errorf("the log or the metrics have %s:\n%s", secret, w.logged())
		}
	}
}

func TestVerdictsAreDelivered(t *testing.T) {
	w, all, some := newWorld(t), newReceiver(t, nil), newReceiver(t, nil)
	w.start("n", Endpoint{Name: "all", URL: all.URL}, Endpoint{Name: "some", URL: some.URL,
		Events: []string{"batch.feasible", "batch.completed"}})
	w.begun("all")
	w.begun("some")
	id, fine := w.batch("a"), w.batch("a")
	w.forecast(fine, store.VerdictOK)
	var want, wantSome []string
	for _, step := range []struct {
		verdict store.Verdict
		event   string // empty: none
	}{{store.VerdictOK, ""}, {store.VerdictAtRisk, "at_risk"}, {"", ""},
		{store.VerdictAtRisk, ""}, {store.VerdictInfeasible, "infeasible"},
		{store.VerdictAtRisk, "at_risk"}, {store.VerdictOK, "feasible"}, {store.VerdictOK, ""},
		{store.VerdictInfeasible, "infeasible"}} {
		w.forecast(id, step.verdict)
		if step.event != "" {
			want = append(want, id+" "+step.event)
		}
		if step.event == "feasible" {
			wantSome = append(wantSome, id+" feasible")
		}
		for name, r := range map[string]*receiver{"all": all, "some": some} {
			if step.event != "" { // else nothing shows that the verdict was read
				w.await(name+" has seen "+step.event, func() bool {
					last, err := w.db.LastNotices(t.Context(), name, []string{id})
					return err == nil && last[id].Event == "batch."+step.event
				})
			}
			if name == "all" {
				w.delivered(name, r, want...)
			} else {
				w.delivered(name, r, wantSome...)
			}
		}
	}
	w.end(id, store.Completed)
	w.delivered("all", all, append(want, id+" completed")...)
	w.delivered("some", some, append(wantSome, id+" completed")...)
}

// A delivery that failed is repeated with the same id, by the next process too.
func TestDeliveryIsRepeatedOverARestart(t *testing.T) {
	var healthy bool
	var mu sync.Mutex
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		mu.Lock()
		defer mu.Unlock()
		if !healthy {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	w := newWorld(t)
	_, stop := w.start("n", Endpoint{Name: "e", URL: r.URL})
	w.begun("e")
	id := w.batch("a")
	w.end(id, store.Completed)
	w.await("some attempts", func() bool { return len(r.got()) >= 3 })
	stop()
	missed := w.batch("a")
	w.end(missed, store.Failed) // while nobody delivers
	mu.Lock()
	healthy = true
	mu.Unlock()
	w.start("n", Endpoint{Name: "e", URL: r.URL})
	w.await("both are delivered", func() bool {
		n, err := w.db.PendingNotices(t.Context(), "e")
		return err == nil && n == 0 && len(r.events()) == 2
	})
	if got := slices.Sorted(slices.Values(r.events())); got[0] != id+" completed" ||
		got[1] != missed+" failed" {
		t.Errorf("got %v", got)
	}
	if n := strings.Count(w.logged(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings about an endpoint that fails, want 1:\n%s", n, w.logged())
	}
}

// A process that stops while an answer is awaited leaves the delivery to the next one.
func TestDeliveryIsRepeatedAfterAStop(t *testing.T) {
	release := make(chan struct{})
	r := newReceiver(t, func(_ http.ResponseWriter, q *http.Request, n int) {
		if n == 1 {
			<-release
		}
	})
	defer close(release)
	w := newWorld(t)
	_, stop := w.start("n", Endpoint{Name: "e", URL: r.URL})
	w.begun("e")
	id := w.batch("a")
	w.end(id, store.Completed)
	w.await("the first attempt", func() bool { return len(r.got()) == 1 })
	stop()
	w.start("other", Endpoint{Name: "e", URL: r.URL})
	w.delivered("e", r, id+" completed")
	if got := r.got(); len(got) != 2 || got[0] != got[1] {
		t.Errorf("got %v, want the same twice", got)
	}
	last, err := w.db.LastNotices(t.Context(), "e", []string{id})
	if err != nil || last[id].Attempts != 1 || strings.Contains(w.logged(), "WARN") {
		t.Errorf("the stop counts as a failure: %+v, %v\n%s", last[id], err, w.logged())
	}
}

func TestOneOfSeveralProcessesDelivers(t *testing.T) {
	w, r := newWorld(t), newReceiver(t, nil)
	var stops []func()
	for i := range 3 {
		_, stop := w.start(fmt.Sprint("n", i), Endpoint{Name: "e", URL: r.URL})
		stops = append(stops, stop)
	}
	w.begun("e")
	sent := 0
	for _, stop := range append(stops, func() {}) {
		if sent > 0 && sent == 60 {
			break // nobody is left
		}
		for range 20 {
			w.end(w.batch("a"), store.Completed)
			sent++
		}
		w.await("all are delivered", func() bool {
			n, err := w.db.PendingNotices(t.Context(), "e")
			return err == nil && n == 0 && len(r.events()) == sent
		})
		stop()
	}
	if n := len(r.got()); n != sent {
		t.Errorf("%d deliveries of %d events", n, sent)
	}
}

func TestEndpointIsGivenUp(t *testing.T) {
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.WriteHeader(http.StatusBadGateway)
	})
	gone := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.WriteHeader(http.StatusGone)
	})
	w := newWorld(t)
	registry, _ := w.start("n", Endpoint{Name: "e", URL: r.URL,
		GiveUpAfter: 3 * time.Second}, Endpoint{Name: "gone", URL: gone.URL})
	w.begun("e")
	w.begun("gone")
	id := w.batch("a")
	w.end(id, store.Completed)
	w.delivered("e", r, id+" completed")
	w.delivered("gone", gone, id+" completed")
	if n := len(r.got()); n < 3 {
		t.Errorf("%d attempts, want some", n)
	}
	if n := len(gone.got()); n != 1 {
		t.Errorf("%d attempts after 410, want 1", n)
	}
	if n := strings.Count(w.logged(), "given up"); n != 2 {
		t.Errorf("%d events are given up in the log, want 2:\n%s", n, w.logged())
	}
	families, err := registry.Gather()
	if text := fmt.Sprint(families); err != nil || !strings.Contains(text, "given_up") {
		t.Errorf("metrics: %v, %s", err, text)
	}
}

// raw is an endpoint that answers with bytes, and again and again with more.
func raw(t testing.TB, answer string, more []byte) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				conn.Read(make([]byte, 4<<10))
				io.WriteString(conn, answer)
				for more != nil {
					if _, err := conn.Write(more); err != nil {
						return
					}
				}
			}()
		}
	}()
	return "http://" + listener.Addr().String()
}

// Endpoints that misbehave in any way delay nobody else, and take no memory.
func TestHostileEndpoints(t *testing.T) {
	hang := make(chan struct{})
	hanging := newReceiver(t, func(http.ResponseWriter, *http.Request, int) { <-hang })
	defer close(hang)
	target := newReceiver(t, nil)
	redirect := newReceiver(t, func(w http.ResponseWriter, q *http.Request, _ int) {
		http.Redirect(w, q, target.URL, http.StatusTemporaryRedirect)
	})
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	x := bytes.Repeat([]byte("x"), 64<<10)
	good := newReceiver(t, nil)
	hostile := map[string]string{
		"hangs": hanging.URL, "redirects": redirect.URL,
		"refuses": "http://" + closed.Addr().String() + "/?token=t0ken", "closes": raw(t, "", nil),
		"garbage":        raw(t, "SSH-2.0-x\r\n", nil),
		"endless-header": raw(t, "HTTP/1.1 200 OK\r\nA: ", x),
		"endless-body":   raw(t, "HTTP/1.1 500 No\r\n\r\n", x),
		"no-host":        "http://nowhere.invalid/",
	}
	w := newWorld(t)
	var endpoints []Endpoint
	for name, url := range hostile {
		endpoints = append(endpoints, Endpoint{Name: name, URL: url,
			Timeout: 500 * time.Millisecond})
	}
	w.start("n", append(endpoints, Endpoint{Name: "good", URL: good.URL},
		Endpoint{Name: "endless", URL: raw(t, "HTTP/1.1 200 OK\r\n\r\n", x)})...)
	for _, e := range append(endpoints, Endpoint{Name: "good"}, Endpoint{Name: "endless"}) {
		w.begun(e.Name)
	}
	begin := time.Now()
	id := w.batch("a")
	w.end(id, store.Completed)
	w.delivered("good", good, id+" completed")
	w.await("an endless answer is a delivery", func() bool {
		last, err := w.db.LastNotices(t.Context(), "endless", []string{id})
		return err == nil && last[id].Attempts == 1 && last[id].Due.IsZero()
	})
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the good endpoint waited %v for the others", took)
	}
	for name := range hostile {
		w.await(name+" is tried again", func() bool {
			last, err := w.db.LastNotices(t.Context(), name, []string{id})
			return err == nil && last[id].Attempts >= 2 && !last[id].Due.IsZero()
		})
	}
	if log := w.logged(); strings.Contains(log, "t0ken") || !strings.Contains(log, "refused") {
		t.Errorf("the log shows a URL, or no cause:\n%s", log)
	}
	if n := len(target.got()); n != 0 {
		t.Errorf("%d requests followed the redirect", n)
	}
}

// A newer event about a batch replaces one that was not delivered.
func TestOnlyTheLastEventOfABatchIsKept(t *testing.T) {
	var mu sync.Mutex
	up := false
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		mu.Lock()
		defer mu.Unlock()
		if !up {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	w := newWorld(t)
	w.start("n", Endpoint{Name: "e", URL: r.URL})
	w.begun("e")
	id := w.batch("a")
	w.forecast(id, store.VerdictAtRisk)
	w.await("an attempt", func() bool { return len(r.got()) > 0 })
	w.end(id, store.Completed)
	w.await("the end is tried", func() bool {
		e := r.got()
		return e[len(e)-1].event == string(Completed)
	})
	mu.Lock()
	up = true
	mu.Unlock()
	w.delivered("e", r, id+" at_risk", id+" completed")
	last := r.got()
	if last[len(last)-1].event != string(Completed) {
		t.Errorf("the last event is %v", last[len(last)-1])
	}
}

// A batch that waits for runners that answer well is notified of, and when it goes on. A batch that
// only seems to wait for a moment is not.
func TestStalledBatchesAreNotifiedOf(t *testing.T) {
	w, all := newWorld(t), newReceiver(t, nil)
	w.start("n", Endpoint{Name: "all", URL: all.URL})
	w.begun("all")
	id := w.batch("a")
	post := func(p store.Progress) {
		t.Helper()
		p.Leads = true
		owner, err := w.db.Register(t.Context(), "dispatcher", time.Hour)
		if err == nil {
			err = w.db.PostProgress(t.Context(), owner, map[string]store.ProgressPost{id: {
				Progress: p}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ok := store.Forecast{Verdict: store.VerdictOK}
	post(store.Progress{Waiting: "runners_failing: r answered 500.", Forecast: ok})
	w.delivered("all", all, id+" stalled")
	post(store.Progress{Forecast: ok})
	w.delivered("all", all, id+" stalled", id+" resumed")
	post(store.Progress{Forecast: store.Forecast{Verdict: store.VerdictAtRisk}})
	w.delivered("all", all, id+" stalled", id+" resumed", id+" at_risk")
	w.end(id, store.Completed)
	w.delivered("all", all, id+" stalled", id+" resumed", id+" at_risk", id+" completed")
}
