package dispatch_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/scheduler"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/disk"
	"github.com/tidefill/tidefill/store/sqlite"
)

// world is a store on disk with everything a dispatcher works on; dispatchers come and go in it.
type world struct {
	t     testing.TB
	meta  *sqlite.DB
	disk  *disk.Store
	clock atomic.Int64 // by how much the store's clock is off, in nanoseconds
	next  int
	nudge []func(string)
}

func newWorld(t testing.TB) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t}
	now := func() time.Time { return time.Now().Add(time.Duration(w.clock.Load())) }
	meta, err := sqlite.Open(t.Context(), filepath.Join(dir, "meta.db"), sqlite.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	files, err := disk.Open(dir, disk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(files.Close(), meta.Close()); err != nil {
			t.Error(err)
		}
	})
	w.meta, w.disk = meta, files
	t.Cleanup(w.checkLedger)
	return w
}

// used returns the whole ledger, by hour, tenant, model and class.
func (w *world) used() []store.Used {
	w.t.Helper()
	used, err := w.meta.Usage(context.WithoutCancel(w.t.Context()), store.UsageQuery{
		Until: time.Now().Add(1000 * time.Hour), Width: time.Hour, ByTenant: true, ByModel: true,
		ByClass: true})
	if err != nil {
		w.t.Fatal(err)
	}
	return used
}

// checkLedger compares the ledger with the batches, if all have ended.
func (w *world) checkLedger() {
	w.t.Helper()
	ctx := context.WithoutCancel(w.t.Context())
	var want, got batchfile.Usage
	for row, err := range w.meta.ExportRows(ctx, store.BatchRows) {
		if err != nil {
			w.t.Fatal(err)
		}
		b := row.Value.(store.StoredBatch)
		if !b.State.Terminal() {
			return
		}
		if b.Usage != nil {
			want.Add(*b.Usage)
		}
	}
	for _, u := range w.used() {
		if u.Class == store.BatchClass {
			got.Add(u.Tokens)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("usage of the batches, and in the ledger: -want +got\n%s", diff)
	}
}

// deps are those of a dispatcher without upstreams.
func (w *world) deps(node string) dispatch.Deps {
	return dispatch.Deps{
		Store:     w.store(),
		Node:      node,
		Scheduler: scheduler.DefaultConfig(),
		Registry:  fixedLines(16),
		Logger: slog.New(slog.NewTextHandler(w.t.Output(), &slog.HandlerOptions{
			Level: slog.LevelInfo})),
	}
}

// store is the world's store as a dispatcher gets it.
func (w *world) store() dispatch.Store {
	return dispatch.Store{Metadata: w.meta, Progress: w.meta, Blobs: w.disk.Blobs(),
		Journals: w.disk.Journals(), Spool: w.disk}
}

// dispatcher starts one; stop ends it as a SIGTERM would and waits for it.
func (w *world) dispatcher(
	node string, change func(*dispatch.Config, *dispatch.Deps), upstreams ...string,
) (d *dispatch.Dispatcher, stop func()) {
	w.t.Helper()
	cfg := dispatch.DefaultConfig()
	cfg.Retry.Base = 5 * time.Millisecond
	cfg.Plan.Breaker.Base = 10 * time.Millisecond
	cfg.Plan.Breaker.Max = 50 * time.Millisecond
	cfg.PollEvery = 50 * time.Millisecond
	cfg.ProgressEvery = 20 * time.Millisecond
	deps := w.deps(node)
	for _, u := range upstreams {
		deps.Upstreams = append(deps.Upstreams, dispatch.Upstream{URL: u})
	}
	if change != nil {
		change(&cfg, &deps)
	}
	d, err := dispatch.New(cfg, deps)
	if err != nil {
		w.t.Fatal(err)
	}
	w.nudge = append(w.nudge, d.Nudge)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				w.t.Errorf("dispatcher %s: %v", node, err)
			}
		})
	}
	w.t.Cleanup(stop)
	return d, stop
}

// chatLine is an ordinary input line.
func chatLine(id, model string) string {
	return fmt.Sprintf(
		`{"custom_id":%q,"method":"POST","url":"/v1/chat/completions","body":{"model":%q,"messages":[{"role":"user","content":"say %s"}]}}`, id, model, id)
}

func chatLines(n int, model string) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = chatLine(fmt.Sprintf("line-%d", i), model)
	}
	return lines
}

// submit makes a batch as the API would.
func (w *world) submit(lines []string, change func(*store.Batch)) string {
	w.t.Helper()
	w.next++
	ctx := w.t.Context()
	id := fmt.Sprintf("batch_%04d", w.next)
	file := fmt.Sprintf("file-in%04d", w.next)
	summary := w.upload(file, lines)
	b := store.Batch{
		ID: id, Tenant: "default", State: store.Validating, Endpoint: summary.URLs[0].URL,
		Window:    "24h",
		CreatedAt: time.Now(), Deadline: time.Now().Add(24 * time.Hour),
		Inputs: []store.Input{{FileID: file, BlobKey: "files/" + file, IndexKey: "files/" + file +
			".index", Lines: summary.Lines}},
		Outputs: []store.Output{{Input: -1, OutputID: "file-out" + id, ErrorID: "file-err" + id}},
		Counts:  store.Counts{Total: summary.Lines},
	}
	for _, m := range summary.Models {
		b.Models = append(b.Models, store.ModelLines{Model: m.Name, Lines: m.Lines})
		b.PromptBytes += m.PromptBytes
	}
	if change != nil {
		change(&b)
	}
	w.moveFile(file, b.Tenant)
	if err := w.meta.CreateBatch(ctx, b); err != nil {
		w.t.Fatal(err)
	}
	w.touch(id)
	return id
}

// moveFile makes the file another tenant's.
func (w *world) moveFile(id, tenant string) {
	w.t.Helper()
	f, err := w.meta.File(w.t.Context(), "", id)
	if err == nil && f.Tenant != tenant {
		f.Tenant = tenant
		err = errors.Join(w.meta.PurgeFile(w.t.Context(), id), w.meta.CreateFile(w.t.Context(), f))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) touch(id string) {
	for _, nudge := range w.nudge {
		nudge(id)
	}
}

func (w *world) upload(file string, lines []string) batchfile.Summary {
	w.t.Helper()
	ctx := w.t.Context()
	blob, err := w.disk.Blobs().Create(ctx, "files/"+file)
	if err != nil {
		w.t.Fatal(err)
	}
	index, err := w.disk.Blobs().Create(ctx, "files/"+file+".index")
	if err != nil {
		w.t.Fatal(err)
	}
	scanner := batchfile.NewScanner(index, batchfile.Limits{})
	text := strings.Join(lines, "\n") + "\n"
	if _, err := io.Copy(io.MultiWriter(blob, scanner), strings.NewReader(text)); err != nil {
		w.t.Fatal(err)
	}
	summary, err := scanner.Finish()
	if err = errors.Join(err, blob.Commit(w.t.Context()), index.Commit(w.t.Context())); err != nil {
		w.t.Fatal(err)
	}
	if summary.FaultCount > 0 {
		w.t.Fatalf("the test's own lines are faulty: %v", summary.Faults)
	}
	err = w.meta.CreateFile(ctx, store.File{
		ID: file, Tenant: "default", Purpose: "batch", Filename: file + ".jsonl", Bytes: int64(
			len(text)), CreatedAt: time.Now(),
		BlobKey: "files/" + file, IndexKey: "files/" + file + ".index", Summary: &summary,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return summary
}

// until polls until done returns true.
func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never happened that %s", what)
		}
	}
}

func (w *world) batch(id string) store.Batch {
	w.t.Helper()
	b, err := w.meta.Batch(w.t.Context(), "", id)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// modify changes a batch as the API would.
func (w *world) modify(id string, change func(*store.Batch)) {
	w.t.Helper()
	_, err := store.Modify(w.t.Context(), w.meta, "", id, func(b *store.Batch) error {
		change(b)
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.touch(id)
}

// await polls until the batch is as wanted; the limit is far beyond what any machine needs.
func (w *world) await(id, what string, wanted func(store.Batch) bool) store.Batch {
	w.t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for {
		b := w.batch(id)
		if wanted(b) {
			return b
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("batch %s: never %s: state %s, counts %+v", id, what, b.State, b.Counts)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (w *world) awaitEnd(id string) store.Batch {
	w.t.Helper()
	return w.await(id, "ended", func(b store.Batch) bool { return b.State.Terminal() })
}

func (w *world) progress(id string) store.Progress {
	w.t.Helper()
	p, err := store.ReadProgress(w.t.Context(), w.meta, w.meta, []string{id}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return p[id]
}

// waitsFor reports whether the batch waits for a reason, which is said to its users in a sentence.
func (w *world) waitsFor(id string, reason plan.Reason) bool {
	w.t.Helper()
	text := w.progress(id).Waiting
	return plan.ReasonOf(text) == reason && text == reason.Text()
}

// result is a line of an output or error file.
type result struct {
	ID       string `json:"id"`
	CustomID string `json:"custom_id"`
	Response *struct {
		StatusCode int             `json:"status_code"`
		RequestID  string          `json:"request_id"`
		Body       json.RawMessage `json:"body"`
	} `json:"response"`
	Error *struct{ Code, Message string } `json:"error"`
}

// results reads both files of an ended batch and checks that they hold each custom_id once, as many
// as the counts say.
func (w *world) results(id string) (output, errs []result) {
	w.t.Helper()
	b := w.batch(id)
	seen := map[string]bool{}
	read := func(file string, written bool) []result {
		if !written {
			return nil
		}
		var all []result
		scanner := bufio.NewScanner(bytes.NewReader(w.content(file)))
		scanner.Buffer(nil, 1<<28)
		for scanner.Scan() {
			var r result
			if err := json.Unmarshal(scanner.Bytes(), &r); err != nil {
				w.t.Fatalf("result line %q: %v", scanner.Text(), err)
			}
			if seen[r.CustomID] {
				w.t.Errorf("custom_id %q is there twice", r.CustomID)
			}
			seen[r.CustomID] = true
			all = append(all, r)
		}
		return all
	}
	for _, out := range b.Outputs {
		output = append(output, read(out.OutputID, out.HasOutput)...)
		errs = append(errs, read(out.ErrorID, out.HasErrors)...)
	}
	if len(output) != b.Counts.Completed || len(errs) != b.Counts.Failed ||
		len(seen) != b.Counts.Total {
		w.t.Errorf("files hold %d + %d lines, counts say %+v", len(output), len(errs), b.Counts)
	}
	return output, errs
}

func (w *world) content(file string) []byte {
	w.t.Helper()
	f, err := w.meta.File(w.t.Context(), "default", file)
	if err != nil {
		w.t.Fatal(err)
	}
	blob, err := w.disk.Blobs().Open(w.t.Context(), f.BlobKey)
	if err != nil {
		w.t.Fatal(err)
	}
	defer blob.Close()
	content, err := io.ReadAll(io.NewSectionReader(blob, 0, blob.Size()))
	if err != nil || int64(len(content)) != f.Bytes {
		w.t.Fatalf("file %s: read %d of %d bytes: %v", file, len(content), f.Bytes, err)
	}
	return content
}

// upstream is a model server whose answers a test decides.
type upstream struct {
	*httptest.Server
	mu     sync.Mutex
	bodies map[string]int // how often each body came
	most   int            // in flight at once
	now    int
}

// serve starts an upstream for the models; answer may be nil.
func serve(t *testing.T, answer http.HandlerFunc, models ...string) *upstream {
	u := &upstream{bodies: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		var list struct {
			Data []map[string]string `json:"data"`
		}
		for _, m := range models {
			list.Data = append(list.Data, map[string]string{"id": m})
		}
		json.NewEncoder(w).Encode(list)
	})
	mux.HandleFunc("POST /v1/", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		u.mu.Lock()
		u.bodies[string(body)]++
		u.now++
		u.most = max(u.most, u.now)
		u.mu.Unlock()
		defer func() {
			u.mu.Lock()
			u.now--
			u.mu.Unlock()
		}()
		w.Header().Set("X-Request-Id", "up-"+r.Header.Get("X-Request-Id"))
		if answer == nil {
			io.WriteString(w, okBody)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer(w, r)
	})
	u.Server = httptest.NewServer(mux)
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) requests() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := 0
	for _, times := range u.bodies {
		n += times
	}
	return n
}

const okBody = `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"}}],"data":[],"results":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}`

type jsonRaw = json.RawMessage

// serveAt starts an upstream at an address that was in use before.
func serveAt(t *testing.T, addr string, models ...string) *upstream {
	t.Helper()
	u := serve(t, nil, models...)
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	again := &http.Server{Handler: u.Config.Handler}
	go again.Serve(listener)
	t.Cleanup(func() { again.Close() })
	return u
}

// events counts events. Tests wait for a number of them.
type events struct {
	mu    sync.Mutex
	n     int
	added chan struct{} // closed by the next event; nil: nobody waits
}

// add counts an event and returns their number.
func (e *events) add() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.n++
	if e.added != nil {
		close(e.added)
		e.added = nil
	}
	return e.n
}

func (e *events) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.n
}

// await waits until there were n events.
func (e *events) await(t testing.TB, n int) {
	t.Helper()
	limit := time.After(60 * time.Second)
	for {
		e.mu.Lock()
		got := e.n
		if e.added == nil {
			e.added = make(chan struct{})
		}
		added := e.added
		e.mu.Unlock()
		if got >= n {
			return
		}
		select {
		case <-added:
		case <-limit:
			t.Fatalf("there were %d events, want %d", got, n)
		}
	}
}

// fixedLines returns a registry without pools, whose flow control lets so many lines run on each
// runner.
func fixedLines(perRunner int) *registry.Snapshot {
	return registry.New(nil, flowcontrol.DefaultConfig().Select(fixed.Name,
		fixed.Config{PerRunner: perRunner}))
}
