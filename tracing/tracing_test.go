package tracing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/tidefill/tidefill/store"
)

func TestFaultsNameTheField(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  Config
		want string // of the fault; empty: there is none
	}{
		"default":     {DefaultConfig(), ""},
		"collector":   {Config{Endpoint: "http://collector:4318", Sample: 1}, ""},
		"path":        {Config{Endpoint: "https://example.com/otlp/"}, ""},
		"no scheme":   {Config{Endpoint: "collector:4317"}, `endpoint is "collector:4317"`},
		"gRPC scheme": {Config{Endpoint: "grpc://collector:4317"}, "endpoint is "},
		"no host":     {Config{Endpoint: "http://:4318"}, "endpoint is "},
		"no URL":      {Config{Endpoint: "http://%zz"}, "endpoint is "},
		"password":    {Config{Endpoint: "http://a:SECRET@collector"}, "endpoint has a user"},
		"query":       {Config{Endpoint: "http://collector/?key=SECRET"}, "endpoint has a user"},
		"negative":    {Config{Sample: -0.1}, "sample is -0.1"},
		"percentage":  {Config{Sample: 5}, "sample is 5"},
		"no number":   {Config{Sample: math.NaN()}, "sample is NaN"},
	} {
		err := c.cfg.Validate()
		switch {
		case c.want == "" && err != nil, c.want != "" && err == nil:
			t.Errorf("%s: got the error %v, want %q", name, err, c.want)
		case err != nil && (!strings.HasPrefix(err.Error(), c.want) ||
			strings.Contains(err.Error(), "SECRET")):
			t.Errorf("%s: got the error %q, want %q", name, err, c.want)
		}
	}
}

func TestSpansArePostedBelowTheEndpoint(t *testing.T) {
	for endpoint, want := range map[string]string{
		"http://c:4318":               "http://c:4318/v1/traces",
		"http://c:4318/":              "http://c:4318/v1/traces",
		"https://c/otlp":              "https://c/otlp/v1/traces",
		"http://c:4318/v1/traces":     "http://c:4318/v1/traces",
		"http://c:4318/otlp/v1/trace": "http://c:4318/otlp/v1/trace/v1/traces",
	} {
		if got, err := (Config{Endpoint: endpoint}).target(); got != want || err != nil {
			t.Errorf("%s: spans are posted to %s, %v, want %s", endpoint, got, err, want)
		}
	}
}

// The share of lines with spans is as configured, in every batch.
func TestSampledShare(t *testing.T) {
	const lines = 20_000
	for _, share := range []float64{0, 0.01, 0.5, 1} {
		for _, batch := range []string{"batch_1", "batch_2"} {
			seed, n := idsOf(&store.Batch{ID: batch}).seed, 0
			for line := range uint32(lines) {
				if isSampled(seed, line, share) {
					n++
				}
			}
			deviation := 5 * math.Sqrt(lines*share*(1-share))
			if math.Abs(float64(n)-lines*share) > deviation {
				t.Errorf("%s: %d of %d lines, want a share of %v", batch, n, lines, share)
			}
		}
	}
}

// tracer returns one that exports to nowhere.
func tracer(t testing.TB, sample float64) *Tracer {
	t.Helper()
	t.Setenv(endpointVariable, "http://127.0.0.1:1")
	made, err := New(Config{Sample: sample}, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = made.Close() })
	return made
}

// A line costs nothing while traces are off, and no memory if it is not sampled.
func TestLinesWithoutSpansTakeNoMemory(t *testing.T) {
	batch := &store.Batch{ID: "batch_1"}
	for name, tracer := range map[string]*Tracer{"off": nil, "not sampled": tracer(t, 0)} {
		chunk, now := tracer.Chunk(batch, store.Chunk{}), time.Now()
		if n := testing.AllocsPerRun(100, func() {
			line := chunk.Line(7, now)
			line.End(Attempt{}, nil)
		}); n > 0 {
			t.Errorf("%s: a line takes %v allocations", name, n)
		}
	}
}

// All attempts of a line have spans, or none has.
func TestAttemptsAgree(t *testing.T) {
	batch, tracer := &store.Batch{ID: "batch_1"}, tracer(t, 0.5)
	first := tracer.Chunk(batch, store.Chunk{ChunkID: store.ChunkID{Batch: batch.ID}, Epoch: 1})
	second := tracer.Chunk(batch, store.Chunk{ChunkID: store.ChunkID{Batch: batch.ID}, Epoch: 2})
	if first.own.SpanID() == second.own.SpanID() {
		t.Error("two claims of a chunk have one id")
	}
	for line := range uint32(100) {
		a, b := first.Line(line, time.Now()), second.Line(line, time.Now())
		if a.Sampled() != b.Sampled() || a.Sampled() && a.own.SpanID() == b.own.SpanID() {
			t.Errorf("line %d has the spans %q and %q", line, a.Traceparent, b.Traceparent)
		}
	}
}

func TestTraceparentOfRequests(t *testing.T) {
	const ids = "4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"
	tracer := tracer(t, 1)
	for given, want := range map[string]string{
		"00-" + ids + "-01":       "00-" + ids + "-01",
		"00-" + ids + "-00":       "00-" + ids + "-00",
		"01-" + ids + "-01-later": "00-" + ids + "-01",
		"ff-" + ids + "-01":       "",
		"00-" + ids:               "",
		"00-" + ids + "-01-more":  "",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01": "",
		"'; drop table": "",
		"":              "",
	} {
		header := http.Header{}
		header.Set(traceparentHeader, given)
		if got := tracer.Traceparent(header); got != want {
			t.Errorf("%q: stored is %q, want %q", given, got, want)
		}
	}
}

// failing is an exporter whose collector fails.
type failing struct {
	sdktrace.SpanExporter
	err error
}

func (f *failing) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return f.err }

// Spans beyond the queue are counted, none that waits is lost, and later ones are exported again.
func TestSpansBeyondTheQueueAreCounted(t *testing.T) {
	const queue, lines = 5, 20
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", fmt.Sprint(queue))
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	arrived, answer := make(chan struct{}, lines), make(chan int)
	collector := httptest.NewServer(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) {
			arrived <- struct{}{}
			w.WriteHeader(<-answer)
		}))
	defer collector.Close()
	made, err := New(Config{Endpoint: collector.URL, Sample: 1}, "", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	end := func(id string) { made.BatchEnded(&store.Batch{ID: id, State: store.Completed}) }
	end("first")
	<-arrived // the collector holds it
	for i := range lines {
		end(fmt.Sprint(i))
	}
	if got, want := made.Lost(), (Lost{QueueFull: lines + 1 - queue}); got != want {
		t.Errorf("lost %+v, want %+v", got, want)
	}
	answer <- http.StatusOK
	<-arrived // those that waited
	answer <- http.StatusBadRequest
	closed := make(chan error, 1)
	go func() { closed <- made.Close() }()
	for done := false; !done; {
		select {
		case err := <-closed:
			done = true
			if err != nil {
				t.Error(err)
			}
		case answer <- http.StatusBadRequest: // if they came in parts
		}
	}
	want := Lost{QueueFull: lines + 1 - queue, Failed: queue - 1}
	if got := made.Lost(); got != want {
		t.Errorf("lost %+v, want %+v", got, want)
	}
	if got := (*Tracer)(nil).Lost(); got != (Lost{}) {
		t.Errorf("without traces: lost %+v", got)
	}
}

// Each cause is in the log once a minute, with the spans that were lost since.
func TestLostSpansAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		inner := &failing{}
		e := &exporter{SpanExporter: inner, log: slog.New(slog.NewTextHandler(&log, nil))}
		logged := func(err error) int {
			t.Helper()
			log.Reset()
			inner.err = err
			if err := e.ExportSpans(t.Context(), make([]sdktrace.ReadOnlySpan, 10)); err != nil {
				t.Errorf("the SDK got the error %v", err)
			}
			return strings.Count(log.String(), "level=WARN")
		}
		refused := func(port int) error { // as net/http makes it, with another port each time
			return errors.Join(&url.Error{Op: "Post", URL: "http://c", Err: &net.OpError{Op: "read",
				Source: &net.TCPAddr{Port: port}, Err: errors.New("connection reset by peer")}})
		}
		if n := logged(nil); n != 0 {
			t.Errorf("a success is logged: %s", &log)
		}
		for i, want := range []int{1, 0, 0} {
			if n := logged(refused(i)); n != want {
				t.Errorf("failure %d is logged %d times: %s", i, n, &log)
			}
		}
		n := logged(errors.New("401 " + strings.Repeat("x", 1<<20)))
		if n != 1 || log.Len() > 2000 {
			t.Errorf("another cause is logged %d times, with %d bytes", n, log.Len())
		}
		time.Sleep(time.Minute)
		if n := logged(refused(9)); n != 1 || !strings.Contains(log.String(), "spans=30") {
			t.Errorf("after a minute: %s", &log)
		}
		total := 0
		for i := range 1000 {
			total += logged(fmt.Errorf("cause %d", i))
		}
		if total > maxCauses {
			t.Errorf("%d causes are logged in a moment", total)
		}
	})
}
