package app_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch/async"
	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/internal/testservers"
	"github.com/tidefill/tidefill/internal/testservers/redis"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/runner/emulator"
)

// otlpServer takes spans as a collector does.
type otlpServer struct {
	*httptest.Server
	mu       sync.Mutex
	requests int
	header   http.Header // of the last request
	raw      []byte      // of all requests
	resource []*common.KeyValue
	spans    []*otlp.Span
}

func startCollector(t *testing.T) *otlpServer {
	t.Helper()
	c := &otlpServer{}
	c.Server = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.Close)
	return c
}

func (c *otlpServer) serve(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		body = unzipped
	}
	raw, err := io.ReadAll(body)
	var request collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(raw, &request)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, fmt.Sprint(r.URL.Path, ": ", err), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	c.header, c.raw = r.Header, append(c.raw, raw...)
	for _, resource := range request.ResourceSpans {
		c.resource = resource.Resource.Attributes
		for _, scope := range resource.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

// named returns the spans with a name.
func (c *otlpServer) named(name string) []*otlp.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.spans), func(s *otlp.Span) bool {
		return s.Name != name
	})
}

// the returns the only span with a name.
func (c *otlpServer) the(t *testing.T, name string) *otlp.Span {
	t.Helper()
	spans := c.named(name)
	if len(spans) != 1 {
		t.Fatalf("got %d spans %s, want 1: %v", len(spans), name, spans)
	}
	return spans[0]
}

// attributes returns attributes as texts.
func attributes(list []*common.KeyValue) map[string]string {
	texts := map[string]string{}
	for _, a := range list {
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			texts[a.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			texts[a.Key] = fmt.Sprint(v.IntValue)
		}
	}
	return texts
}

// tracedEngine is an emulated runner that keeps the traceparents that it gets.
type tracedEngine struct {
	url string

	mu    sync.Mutex
	got   []string
	fail  int           // requests to answer with failStatus
	hold  chan struct{} // nil: it answers at once
	holds int           // the first requests that it answers in spite of hold
	// failStatus is the status of answers that fail. Default: 500.
	failStatus int
}

func startTracedEngine(t *testing.T) *tracedEngine {
	t.Helper()
	c := emulator.DefaultConfig()
	c.Profile, c.Models = emulator.Instant, []string{"m"}
	r, err := emulator.New(c)
	if err != nil {
		t.Fatal(err)
	}
	e, emulated := &tracedEngine{failStatus: http.StatusInternalServerError}, r.Handler()
	server := httptest.NewServer(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && e.intercepts(w, r) {
				return
			}
			emulated.ServeHTTP(w, r)
		}))
	t.Cleanup(server.Close)
	e.url = server.URL
	return e
}

// intercepts notes the header of a line, and answers in the place of the emulator if it is to.
func (e *tracedEngine) intercepts(w http.ResponseWriter, r *http.Request) bool {
	e.mu.Lock()
	e.got = append(e.got, r.Header.Get("Traceparent"))
	fails, hold := e.fail > 0, e.hold
	if fails {
		e.fail--
	}
	if e.holds > 0 {
		e.holds--
		hold = nil
	}
	e.mu.Unlock()
	if fails {
		http.Error(w, `{"error":{"message":"broken ANSWER","type":"server_error"}}`, e.failStatus)
		return true
	}
	if hold != nil {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		select {
		case <-hold:
		case <-r.Context().Done():
			return true
		}
	}
	return false
}

func (e *tracedEngine) traceparents() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.got)
}

const secretPrompt = "SECRETPROMPT"

// createTraced creates a batch by a request with a traceparent; empty: without.
func createTraced(t *testing.T, url, lines, traceparent string) client.Batch {
	t.Helper()
	c, err := client.New(url, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	file, err := c.Upload(t.Context(), "l.jsonl", strings.NewReader(lines), int64(len(lines)))
	if err != nil {
		t.Fatal(err)
	}
	return postBatch(t, url+"/v1/batches", fmt.Sprintf(`{"input_file_id":%q,`+
		`"endpoint":"/v1/chat/completions","completion_window":"24h",`+
		`"metadata":{"secret":"SECRETMETA"}}`, file.ID), traceparent)
}

// postBatch sends a request that creates a batch.
func postBatch(t *testing.T, url, body, traceparent string) (b client.Batch) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url,
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if traceparent != "" {
		r.Header.Set("Traceparent", traceparent)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&b); err != nil || b.ID == "" {
		t.Fatalf("create a batch: %s, %v", answer.Status, err)
	}
	return b
}

func tracedLines(n int) string {
	lines := strings.ReplaceAll(apptest.BatchFile(n), `"content":"`, `"content":"`+secretPrompt)
	return strings.ReplaceAll(lines, `"custom_id":"`, `"custom_id":"SECRETID`)
}

// awaitEnd returns a batch when it has ended.
func awaitEnd(t *testing.T, url, id string) (b client.Batch) {
	t.Helper()
	eventually(t, "the batch to end", func() bool {
		callJSON(t, http.MethodGet, url+"/v1/batches/"+id, "", nil, &b)
		return b.EndedAt() > 0
	})
	return b
}

// tracedConfig returns the configuration of a daemon that exports to a collector.
func tracedConfig(data, engine, collector string, sample float64) config.Config {
	cfg := apptest.Config(data, engine)
	cfg.Tracing.Endpoint, cfg.Tracing.Sample = collector, sample
	return cfg
}

// derivedIDs returns the ids of the trace and of the span of a batch, as docs/tracing.md has them.
func derivedIDs(batch string) (trace, span string) {
	digest := sha256.Sum256([]byte(batch))
	return hex.EncodeToString(digest[:16]), hex.EncodeToString(digest[16:24])
}

// A batch is one trace: its chunks are below it, and the attempts of its lines below these.
func TestABatchIsATrace(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-collector-key=COLLECTORKEY")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	spans, engine := startCollector(t), startTracedEngine(t)
	engine.fail = 1
	a, stop := apptest.Start(t, tracedConfig(t.TempDir(), engine.url, spans.URL, 1),
		app.Options{Version: "v1.2.3"})
	b := awaitEnd(t, a.URL(), createTraced(t, a.URL(), tracedLines(3), "").ID)
	stop()
	if b.Counts.Completed != 3 {
		t.Fatalf("the batch has %+v", b.Counts)
	}

	about := attributes(spans.resource)
	for key, want := range map[string]string{"service.name": "tidefill",
		"service.version": "v1.2.3", "deployment.environment.name": "test"} {
		if about[key] != want {
			t.Errorf("resource attribute %s is %q, want %q", key, about[key], want)
		}
	}
	if spans.header.Get("X-Collector-Key") != "COLLECTORKEY" {
		t.Errorf("the collector got the header %v", spans.header)
	}

	batch, chunk, lines := spans.the(t, "batch"), spans.the(t, "chunk"), spans.named("line")
	traceID, spanID := derivedIDs(b.ID)
	if hex.EncodeToString(batch.TraceId) != traceID || hex.EncodeToString(batch.SpanId) != spanID ||
		len(batch.ParentSpanId) > 0 || batch.Status.GetCode() == otlp.Status_STATUS_CODE_ERROR {
		t.Errorf("the batch has the span %v, want trace %s and id %s", batch, traceID, spanID)
	}
	created, ended := time.Unix(0, int64(batch.StartTimeUnixNano)),
		time.Unix(0, int64(batch.EndTimeUnixNano))
	if created.Unix() != b.CreatedAt || ended.Unix() != b.EndedAt() {
		t.Errorf("the batch is from %v to %v, want %d to %d", created, ended, b.CreatedAt,
			b.EndedAt())
	}
	if got := attributes(batch.Attributes); got["tidefill.batch.id"] != b.ID ||
		got["tidefill.batch.state"] != "completed" || got["tidefill.batch.completed"] != "3" {
		t.Errorf("the batch has the attributes %v", got)
	}
	if !bytes.Equal(chunk.TraceId, batch.TraceId) ||
		!bytes.Equal(chunk.ParentSpanId, batch.SpanId) ||
		attributes(chunk.Attributes)["tidefill.outcome"] != "done" ||
		chunk.EndTimeUnixNano <= chunk.StartTimeUnixNano {
		t.Errorf("the chunk has the span %v", chunk)
	}

	byID := map[string]*otlp.Span{}
	failed := 0
	for _, line := range lines {
		byID[hex.EncodeToString(line.SpanId)] = line
		got := attributes(line.Attributes)
		want := map[string]string{"gen_ai.request.model": "m", "tidefill.batch.id": b.ID,
			"server.address": "127.0.0.1", "tidefill.outcome": "succeeded",
			"http.response.status_code": "200", "gen_ai.usage.output_tokens": "3"}
		code := otlp.Status_STATUS_CODE_UNSET
		if got["http.response.status_code"] != "200" {
			failed++
			code = otlp.Status_STATUS_CODE_ERROR
			maps.Copy(want, map[string]string{"tidefill.outcome": "failed",
				"http.response.status_code": "500", "gen_ai.usage.output_tokens": ""})
			if got["tidefill.attempt"] != "1" {
				t.Errorf("the attempt that failed is %s", got["tidefill.attempt"])
			}
		}
		for key, value := range want {
			if got[key] != value {
				t.Errorf("a line has %s %q, want %q", key, got[key], value)
			}
		}
		if !bytes.Equal(line.TraceId, batch.TraceId) ||
			!bytes.Equal(line.ParentSpanId, chunk.SpanId) || line.Status.GetCode() != code ||
			line.Kind != otlp.Span_SPAN_KIND_CLIENT {
			t.Errorf("a line has the span %v", line)
		}
	}
	if len(byID) != 4 || failed != 1 {
		t.Errorf("got %d attempts, of which %d failed, want 4 and 1: %v", len(byID), failed, lines)
	}
	for _, traceparent := range engine.traceparents() {
		parts := strings.Split(traceparent, "-")
		if len(parts) != 4 || parts[0] != "00" || parts[1] != traceID || byID[parts[2]] == nil ||
			parts[3] != "01" {
			t.Errorf("the engine got the traceparent %q, which is of no span of a line",
				traceparent)
		}
	}
	for _, secret := range []string{secretPrompt, "SECRETMETA", "SECRETID", "COLLECTORKEY",
		"ANSWER"} {
		if bytes.Contains(spans.raw, []byte(secret)) {
			t.Errorf("spans contain %s", secret)
		}
	}
}

// Without a sampled line engines get the chunk's span, with the flag that it is not recorded for
// them.
func TestLinesThatAreNotSampled(t *testing.T) {
	t.Parallel()
	spans, engine := startCollector(t), startTracedEngine(t)
	a, stop := apptest.Start(t, tracedConfig(t.TempDir(), engine.url, spans.URL, 0), app.Options{})
	b := awaitEnd(t, a.URL(), createTraced(t, a.URL(), tracedLines(20), "").ID)
	stop()
	traceID, _ := derivedIDs(b.ID)
	want := fmt.Sprintf("00-%s-%x-00", traceID, spans.the(t, "chunk").SpanId)
	got := engine.traceparents()
	if len(got) != 20 || slices.ContainsFunc(got, func(s string) bool { return s != want }) {
		t.Errorf("the engine got %q, want 20 of %q", got, want)
	}
	if lines := spans.named("line"); len(lines) > 0 {
		t.Errorf("got spans of lines: %v", lines)
	}
}

// Lines that go through a queue have the traceparent of their spans, too.
func TestLinesThroughAQueueAreTraced(t *testing.T) {
	t.Parallel()
	spans, engine, server := startCollector(t), startTracedEngine(t), redis.Start(t)
	cfg := tracedConfig(t.TempDir(), "http://127.0.0.1:9", spans.URL, 1) // no engine is there
	cfg.Upstreams[0].Name, cfg.Upstreams[0].Pool = "gpu-1", "p"
	cfg.Pools = []config.PoolConfig{{Pool: registry.Pool{Name: "p", Models: []string{"m"}, Max: 1},
		Send: "async"}}
	cfg.Async.URL = "redis://" + server.Addr
	queue := goredis.NewClient(&goredis.Options{Addr: server.Addr})
	defer queue.Close()
	w, err := async.NewWorker(async.WorkerConfig{Prefix: cfg.Async.Prefix, Runner: "gpu-1",
		Engine: engine.url, Concurrency: 4, Drain: time.Second, DialTimeout: time.Second}, queue,
		slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	worked := make(chan error, 1)
	go func() { worked <- w.Run(ctx) }()
	defer func() {
		cancel()
		<-worked
	}()
	a, stop := apptest.Start(t, cfg, app.Options{})
	const lines = 20
	b := awaitEnd(t, a.URL(), createTraced(t, a.URL(), tracedLines(lines), "").ID)
	stop()
	if b.Counts.Completed != lines {
		t.Fatalf("the batch has %+v", b.Counts)
	}
	traceID, _ := derivedIDs(b.ID)
	var want []string
	for _, line := range spans.named("line") {
		want = append(want, fmt.Sprintf("00-%s-%x-01", traceID, line.SpanId))
	}
	got := engine.traceparents()
	slices.Sort(got)
	slices.Sort(want)
	if len(got) != lines || !slices.Equal(got, want) {
		t.Errorf("the engine got %q, want %q", got, want)
	}
}

// Batches that fail or are cancelled have spans, too, and so have chunks that are given back: with
// a cancelled batch, and when the daemon stops.
func TestSpansOfWhatIsNotDone(t *testing.T) {
	t.Parallel()
	spans, engine := startCollector(t), startTracedEngine(t)
	engine.hold = make(chan struct{})
	a, stop := apptest.Start(t, tracedConfig(t.TempDir(), engine.url, spans.URL, 1), app.Options{})
	faulty := createTraced(t, a.URL(), `{"custom_id":"SECRETID"}`+"\n", "")
	inFlight := func(n int) func() bool {
		return func() bool { return len(engine.traceparents()) == n }
	}
	cancelled := createTraced(t, a.URL(), tracedLines(1), "")
	eventually(t, "the line to be in flight", inFlight(1))
	callJSON(t, http.MethodPost, a.URL()+"/v1/batches/"+cancelled.ID+"/cancel", "", nil, nil)
	awaitEnd(t, a.URL(), cancelled.ID)
	stopped := createTraced(t, a.URL(), tracedLines(1), "")
	eventually(t, "the line to be in flight", inFlight(2))
	stop()

	of := func(name, batch string) *otlp.Span {
		for _, s := range spans.named(name) {
			if attributes(s.Attributes)["tidefill.batch.id"] == batch {
				return s
			}
		}
		return nil
	}
	failed := otlp.Status_STATUS_CODE_ERROR
	if s := of("batch", faulty.ID); s.GetStatus().GetCode() != failed {
		t.Errorf("the batch is %s and has the span %v", faulty.Status, s)
	}
	if s := of("batch", cancelled.ID); s == nil || s.Status.GetCode() == failed {
		t.Errorf("the cancelled batch has the span %v", s)
	}
	if s := of("batch", stopped.ID); s != nil {
		t.Errorf("a batch that goes on has the span %v", s)
	}
	for _, batch := range []string{cancelled.ID, stopped.ID} {
		if s := of("chunk", batch); attributes(s.GetAttributes())["tidefill.outcome"] !=
			"given_back" {
			t.Errorf("a chunk that was given back has the span %v", s)
		}
		if s := of("line", batch); attributes(s.GetAttributes())["tidefill.outcome"] !=
			"evicted" || s.Status.GetCode() == failed {
			t.Errorf("a line that was evicted has the span %v", s)
		}
	}
}

// A retry belongs to the trace of its own request.
func TestARetryIsTraced(t *testing.T) {
	t.Parallel()
	spans, engine := startCollector(t), startTracedEngine(t)
	engine.fail, engine.failStatus = 1, http.StatusBadRequest
	a, stop := apptest.Start(t, tracedConfig(t.TempDir(), engine.url, spans.URL, 1), app.Options{})
	b := awaitEnd(t, a.URL(), createTraced(t, a.URL(), tracedLines(1), "").ID)
	if b.Counts.Failed != 1 {
		t.Fatalf("the batch has %+v", b.Counts)
	}
	const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	retry := postBatch(t, a.URL()+"/v1/batches/"+b.ID+"/retry", "{}",
		"00-"+traceID+"-00f067aa0ba902b7-01")
	awaitEnd(t, a.URL(), retry.ID)
	stop()
	for _, s := range spans.named("batch") {
		if id := attributes(s.Attributes)["tidefill.batch.id"]; (id == retry.ID) !=
			(hex.EncodeToString(s.TraceId) == traceID) {
			t.Errorf("batch %s is of trace %x; the retry is %s", id, s.TraceId, retry.ID)
		}
	}
}

// daemonVariable makes TestTracedDaemon run a daemon: the directory of its data, and the URLs of
// its engine and its collector.
const daemonVariable = "TIDEFILL_TEST_TRACED_DAEMON"

// TestTracedDaemon is no test: it is a process that TestAKilledDaemonContinuesTheTrace kills.
func TestTracedDaemon(t *testing.T) {
	parameters := strings.Fields(os.Getenv(daemonVariable))
	if len(parameters) != 3 {
		return
	}
	a, _ := apptest.Start(t, tracedConfig(parameters[0], parameters[1], parameters[2], 1),
		app.Options{})
	urlFile := filepath.Join(parameters[0], "url")
	if err := os.WriteFile(urlFile+".new", []byte(a.URL()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(urlFile+".new", urlFile); err != nil {
		t.Fatal(err)
	}
	select {} // until it is killed
}

// A batch stays one trace, that of the request that created it, when its daemon is killed.
func TestAKilledDaemonContinuesTheTrace(t *testing.T) {
	t.Parallel()
	spans, engine := startCollector(t), startTracedEngine(t)
	engine.hold, engine.holds = make(chan struct{}), 2
	data := t.TempDir()
	var url []byte
	daemon := testservers.Program{Path: os.Args[0], Args: []string{"-test.run=^TestTracedDaemon$"},
		Env: []string{daemonVariable + "=" + data + " " + engine.url + " " + spans.URL},
	}.Run(t, func(context.Context) (err error) {
		url, err = os.ReadFile(filepath.Join(data, "url"))
		return err
	})
	const traceID, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	b := createTraced(t, string(url), tracedLines(4),
		"00-"+traceID+"-"+parent+"-00")
	eventually(t, "the lines to be in flight", func() bool {
		callJSON(t, http.MethodGet, string(url)+"/v1/batches/"+b.ID, "", nil, &b)
		return len(engine.traceparents()) >= 4 && b.Counts.Completed == 2
	})
	if err := daemon.Stop(); err != nil { // by SIGKILL
		t.Fatal(err)
	}
	close(engine.hold)

	a, stop := apptest.Start(t, tracedConfig(data, engine.url, spans.URL, 1), app.Options{})
	b = awaitEnd(t, a.URL(), b.ID)
	stop()
	if b.Counts.Completed != 4 {
		t.Errorf("the batch has %+v", b.Counts)
	}
	_, spanID := derivedIDs(b.ID)
	batch := spans.the(t, "batch")
	if hex.EncodeToString(batch.SpanId) != spanID ||
		hex.EncodeToString(batch.ParentSpanId) != parent {
		t.Errorf("the batch has the span %v, want %s below %s", batch, spanID, parent)
	}
	if got := spans.named("line"); len(got) < 2 {
		t.Errorf("got %d spans of lines, want at least those after the restart", len(got))
	}
	for _, s := range spans.spans {
		if hex.EncodeToString(s.TraceId) != traceID {
			t.Errorf("span %s is of trace %x, want %s", s.Name, s.TraceId, traceID)
		}
	}
	got := engine.traceparents()
	if len(got) != 6 || slices.ContainsFunc(got, func(s string) bool {
		return !strings.HasPrefix(s, "00-"+traceID+"-") || !strings.HasSuffix(s, "-01")
	}) {
		t.Errorf("the engine got %q, want 6 of trace %s", got, traceID)
	}
}

// Without a collector nothing is sent, and engines get no header.
func TestTracesAreOff(t *testing.T) {
	spans := startCollector(t)
	for name, variables := range map[string]map[string]string{
		"by default": {},
		"disabled": {"OTEL_SDK_DISABLED": "true",
			"OTEL_EXPORTER_OTLP_ENDPOINT": spans.URL},
		"another exporter": {"OTEL_TRACES_EXPORTER": "none",
			"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": spans.URL + "/v1/traces"},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range variables {
				t.Setenv(variable, value)
			}
			engine := startTracedEngine(t)
			a, stop := apptest.Start(t, tracedConfig(t.TempDir(), engine.url, "", 1),
				app.Options{})
			awaitEnd(t, a.URL(), createTraced(t, a.URL(), tracedLines(2),
				"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").ID)
			stop()
			if got := engine.traceparents(); len(got) != 2 || strings.Join(got, "") != "" {
				t.Errorf("the engine got %q, want two empty ones", got)
			}
			if spans.requests > 0 {
				t.Errorf("the collector got %d requests", spans.requests)
			}
		})
	}
}

// Those who know OpenTelemetry turn traces on by its variables.
func TestTracesByVariables(t *testing.T) {
	for variable, path := range map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "/v1/traces"} {
		t.Run(variable, func(t *testing.T) {
			spans, engine := startCollector(t), startTracedEngine(t)
			t.Setenv(variable, spans.URL+path)
			t.Setenv("OTEL_SERVICE_NAME", "night-shift")
			a, stop := apptest.Start(t, tracedConfig(t.TempDir(), engine.url, "", 1),
				app.Options{})
			awaitEnd(t, a.URL(), createTraced(t, a.URL(), tracedLines(1), "").ID)
			stop()
			spans.the(t, "batch")
			if name := attributes(spans.resource)["service.name"]; name != "night-shift" {
				t.Errorf("the service is %q", name)
			}
		})
		t.Run(variable+" that is no URL", func(t *testing.T) {
			t.Setenv(variable, "collector:4317")
			_, err := app.New(apptest.Config(t.TempDir()), app.Options{})
			if err == nil || !strings.Contains(err.Error(), variable+" is ") {
				t.Errorf("got the error %v, want one that names the variable", err)
			}
		})
	}
}

// A collector that is away or hangs costs its spans alone. The log says so, and the shutdown waits
// for it for three seconds.
func TestACollectorIsAway(t *testing.T) {
	hanging := make(chan struct{})
	for name, serve := range map[string]http.HandlerFunc{
		"away": nil,
		"refuses": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no such key", http.StatusUnauthorized)
		},
		"hangs": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case <-hanging:
			case <-r.Context().Done():
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20") // several exports
			for _, limit := range []string{"OTEL_BSP_EXPORT_TIMEOUT",
				"OTEL_EXPORTER_OTLP_TIMEOUT"} {
				t.Setenv(limit, "600000") // so that it does not end the shutdown
			}
			server := httptest.NewServer(serve)
			t.Cleanup(server.Close)
			if serve == nil {
				server.Close()
			}
			engine, log := startTracedEngine(t), &syncBuffer{}
			a, stop := apptest.Start(t, tracedConfig(t.TempDir(), engine.url, server.URL, 1),
				app.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
			for range 3 {
				b := awaitEnd(t, a.URL(), createTraced(t, a.URL(), tracedLines(50), "").ID)
				if b.Counts.Completed != 50 {
					t.Errorf("the batch has %+v", b.Counts)
				}
			}
			begun := time.Now()
			stop()
			if took := time.Since(begun); took > time.Minute {
				t.Errorf("the shutdown took %v", took)
			}
			const warning = "level=WARN msg=\"could not export "
			text := log.String()
			if !strings.Contains(text, warning) || strings.Count(text, warning+"spans") > 1 {
				t.Errorf("the log does not have one warning:\n%s", text)
			}
		})
	}
	close(hanging)
}
