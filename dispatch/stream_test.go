package dispatch_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/runner/emulator"
	"github.com/tidefill/tidefill/store"
)

func init() {
	flowcontrol.Register("watching", flowcontrol.Factory{
		Needs: flowcontrol.Needs{Readings: true, Streams: true},
		New: func(cfg flowcontrol.Config) (flowcontrol.Controller, error) {
			cfg.Policy = fixed.Name
			inner, err := flowcontrol.New(cfg)
			return &watching{inner}, err
		},
	})
}

// watching is the policy fixed, which streams all lines and records what it observes.
type watching struct{ flowcontrol.Controller }

// seen is what controllers of the policy watching observed, and whether they are to evict all
// lines until one has come back.
var seen struct {
	sync.Mutex
	observations []any // copies
	evict        bool
}

func (w *watching) Observe(now time.Time, o flowcontrol.Observation) bool {
	seen.Lock()
	defer seen.Unlock()
	_, evicted := o.(*flowcontrol.Evicted)
	_, read := o.(*flowcontrol.Read)
	seen.observations = append(seen.observations, reflect.ValueOf(o).Elem().Interface())
	seen.evict = seen.evict && !evicted
	return w.Controller.Observe(now, o) || evicted || read
}

func (w *watching) Allowance(now time.Time) flowcontrol.Allowance {
	a := w.Controller.Allowance(now)
	a.Streams = 1000
	a.Runners = slices.Clone(a.Runners)
	seen.Lock()
	defer seen.Unlock()
	for i := range a.Runners {
		if seen.evict {
			a.Runners[i].Lines, a.Runners[i].Evict = 0, true
		}
	}
	return a
}

// watch forgets what was observed so far and makes a dispatcher use the policy.
func watch() func(*dispatch.Config, *dispatch.Deps) {
	seen.Lock()
	seen.observations, seen.evict = nil, false
	seen.Unlock()
	return func(_ *dispatch.Config, d *dispatch.Deps) {
		flow := d.Registry.FlowControl()
		flow.Policy = "watching"
		d.Registry = registry.New(nil, flow)
	}
}

// observed are the observations of a type.
func observed[T any]() (of []T) {
	seen.Lock()
	defer seen.Unlock()
	for _, o := range seen.observations {
		if o, ok := o.(T); ok {
			of = append(of, o)
		}
	}
	return of
}

// emulate serves a runner.
func emulate(t *testing.T, change func(*emulator.Config)) *emulator.Server {
	t.Helper()
	cfg := emulator.DefaultConfig()
	cfg.Models, cfg.Record, cfg.Output.Max = []string{"m"}, true, 60
	if change != nil {
		change(&cfg)
	}
	s, err := emulator.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	go s.Run(t.Context())
	return s
}

// generating are lines of all urls that can be streamed, and one that can't.
func generating() (lines []string) {
	for i := range 12 {
		lines = append(lines,
			fmt.Sprintf(
				`{"custom_id":"chat-%d","method":"POST","url":"/v1/chat/completions","body":{"model":"m","n":%d,"messages":[{"role":"user","content":"say %d"}]}}`, i, 1+i%3, i),
			fmt.Sprintf(
				`{"custom_id":"text-%d","method":"POST","url":"/v1/completions","body":{"model":"m","stream":false,"max_tokens":9,"prompt":["a %d","b"]}}`, i, i),
			fmt.Sprintf(
				`{"custom_id":"response-%d","method":"POST","url":"/v1/responses","body":{"model":"m","max_output_tokens":7,"input":"say %d"}}`, i, i),
			fmt.Sprintf(
				`{"custom_id":"embedding-%d","method":"POST","url":"/v1/embeddings","body":{"model":"m","input":"%d"}}`, i, i))
	}
	return lines
}

func TestStreamedAnswersAreTheSame(t *testing.T) {
	answers := func(change func(*dispatch.Config, *dispatch.Deps)) map[string]any {
		w := newWorld(t)
		runner := emulate(t, func(c *emulator.Config) { c.Profile = emulator.Instant })
		up := httptest.NewServer(runner.Handler())
		t.Cleanup(up.Close)
		_, stop := w.dispatcher("a", change, up.URL)
		id := w.submit(generating(), nil)
		b := w.awaitEnd(id)
		output, failed := w.results(id)
		stop()
		if len(failed) > 0 || b.Usage == nil || b.Usage.OutputTokens == 0 {
			t.Errorf("%d lines failed, usage %+v; the first: %+v", len(failed), b.Usage, failed)
		}
		bodies := map[string]any{}
		for _, r := range output {
			var body map[string]any
			if err := json.Unmarshal(r.Response.Body, &body); err != nil {
				t.Fatalf("%s: %v: %s", r.CustomID, err, r.Response.Body)
			}
			delete(body, "created") // a second may have passed between the two
			delete(body, "created_at")
			bodies[strings.ReplaceAll(r.CustomID, "\"", "")] = body
		}
		return bodies
	}
	without := answers(nil)
	registry := prometheus.NewRegistry()
	policy := watch()
	with := answers(func(c *dispatch.Config, d *dispatch.Deps) {
		policy(c, d)
		d.Registerer = registry
	})
	if diff := cmp.Diff(without, with); diff != "" {
		t.Errorf("streamed answers differ: %s", diff)
	}
	if len(with) != 48 || len(observed[flowcontrol.FirstToken]()) != 36 {
		t.Errorf("%d answers, %d first tokens; want 48, of which 36 are streamed", len(with),
			len(observed[flowcontrol.FirstToken]()))
	}
	page := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(page,
		httptest.NewRequest("GET", "/metrics", nil))
	if !strings.Contains(page.Body.String(), `result="streamed",`) ||
		!strings.Contains(page.Body.String(), "} 36\n") {
		t.Errorf("tidefill_streams_total does not say 36:\n%s", page.Body)
	}
}

func TestStreamsReportTokenGaps(t *testing.T) {
	w := newWorld(t)
	runner := emulate(t, func(c *emulator.Config) {
		c.Profile, c.Output.Max = "llama-7b-h100", 4000
	})
	up := httptest.NewServer(runner.Handler())
	t.Cleanup(up.Close)
	_, stop := w.dispatcher("a", watch(), up.URL)
	var lines []string
	for i := range 8 {
		lines = append(lines, fmt.Sprintf(
			`{"custom_id":"%d","method":"POST","url":"/v1/chat/completions","body":{"model":"m","ignore_eos":true,"max_tokens":400,"messages":[{"role":"user","content":"say %d"}]}}`, i, i))
	}
	w.awaitEnd(w.submit(lines, nil))
	stop()
	gaps, took := 0, time.Duration(0)
	for _, o := range observed[flowcontrol.TokenGaps]() {
		gaps, took = gaps+o.Gaps, took+o.Time
	}
	if len(observed[flowcontrol.FirstToken]()) != 8 || gaps < 100 {
		t.Fatalf("%d first tokens, %d gaps; want 8 and some hundred",
			len(observed[flowcontrol.FirstToken]()), gaps)
	}
	whole := observed[flowcontrol.Answered]()[0].Latency
	if mean := took / time.Duration(gaps); mean < whole/800 || mean > whole/200 {
		t.Errorf("the mean gap is %v, an answer of 400 tokens took %v", mean, whole)
	}
}

// What can't be streamed or put together is asked for again without, at once and for nothing, and
// not tried again.
func TestFailedStreamsAreRequestedWithoutStreaming(t *testing.T) {
	event := func(w http.ResponseWriter, chunks ...string) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, c := range append(chunks, "[DONE]") {
			fmt.Fprintf(w, "data: %s\n\n", c)
		}
	}
	for name, c := range map[string]struct {
		answer  func(w http.ResponseWriter)
		streams int // of 40 lines, asked for
		exact   bool
	}{
		"refused": {func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(
				w, `{"error":{"message":"Streaming is not supported for this model","param":"stream"}}`)
		}, 16, false},
		"not understood": {func(w http.ResponseWriter) {
			event(w, `{"choices":[{"index":0,"delta":{"video":1}}]}`,
				`{"choices":[{"index":0,"delta":{"video":2}}]}`)
		}, 16, false},
		"broken off by an error without a status": {func(w http.ResponseWriter) {
			event(w, `{"choices":[{"index":0,"delta":{"content":"a"}}]}`,
				`{"error":{"message":"lost"}}`)
		}, 40, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var streams, plain atomic.Int64
			up := serve(t, func(rw http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if strings.Contains(string(body), `"stream":true`) {
					streams.Add(1)
					c.answer(rw)
					return
				}
				plain.Add(1)
				io.WriteString(rw, okBody)
			}, "m")
			_, stop := w.dispatcher("a", watch(), up.URL)
			b := w.awaitEnd(w.submit(chatLines(40, "m"), nil))
			stop()
			if b.Counts.Completed != 40 || b.Attempts != streams.Load()+plain.Load() {
				t.Errorf("counts %+v, %d attempts; want 40 lines, and all requests counted",
					b.Counts, b.Attempts)
			}
			// Those in flight at that time had been sent already.
			if n := int(streams.Load()); plain.Load() != 40 || n > c.streams || n == 0 || c.exact &&
				n != c.streams {
				t.Errorf("%d requests for streams, %d without; want at most %d, and 40", n,
					plain.Load(), c.streams)
			}
		})
	}
}

func TestFailuresWithAndWithoutStream(t *testing.T) {
	w := newWorld(t)
	body := `{"error":{"message":"the prompt is too long","code":400}}`
	up := serve(t, func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(
			rw, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n"+
				"data: %s\n\ndata: [DONE]\n\n", body)
	}, "m")
	_, stop := w.dispatcher("a", watch(), up.URL)
	id := w.submit(chatLines(1, "m"), nil)
	w.awaitEnd(id)
	_, failed := w.results(id)
	stop()
	if len(failed) != 1 || failed[0].Response == nil || failed[0].Response.StatusCode != 400 ||
		string(failed[0].Response.Body) != body {
		t.Errorf("got %+v, want status 400 and the upstream's body", failed)
	}
	if n := up.requests(); n != 1 {
		t.Errorf("it was sent %d times, want once", n)
	}
}

// A body has stream options of its own: those are the user's,
// and stays.
func TestBodiesWithStreamOptionsAreNotStreamed(t *testing.T) {
	w := newWorld(t)
	up := serve(t, nil, "m")
	_, stop := w.dispatcher("a", watch(), up.URL)
	body := `{"model":"m","stream_options":{"include_usage":false},"messages":[]}`
	w.awaitEnd(
		w.submit(
			[]string{
				fmt.Sprintf(
					`{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":%s}`,
					body)}, nil))
	plain := `{"model":"m", "stream" : false ,"messages":[],"seed":9223372036854775807}`
	w.awaitEnd(
		w.submit(
			[]string{
				fmt.Sprintf(
					`{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":%s}`,
					plain)}, nil))
	stop()
	want := `{"model":"m", "stream" : true ,"messages":[],"seed":9223372036854775807,"stream_options":{"include_usage":true}}`
	if up.bodies[body] != 1 || up.bodies[want] != 1 || len(up.bodies) != 2 {
		t.Errorf("the upstream saw %v, want %s and %s", up.bodies, body, want)
	}
}

// A body that asks for what streams do not have gets the plain answer.
func TestBodiesThatAskForMoreThanStreamsHaveAreNotStreamed(t *testing.T) {
	w := newWorld(t)
	up := serve(t, nil, "m")
	_, stop := w.dispatcher("a", watch(), up.URL)
	var lines, bodies []string
	for i, member := range []string{"prompt_logprobs", "kv_transfer_params", "return_meta_info",
		"logprobs"} {
		bodies = append(bodies, fmt.Sprintf(`{"model":"m","messages":[],"%s":1}`, member))
		lines = append(lines, fmt.Sprintf(
			`{"custom_id":"%d","method":"POST","url":"/v1/chat/completions","body":%s}`, i,
			bodies[i]))
	}
	w.awaitEnd(w.submit(lines, nil))
	stop()
	for _, body := range bodies {
		if up.bodies[body] != 1 || len(up.bodies) != len(bodies) {
			t.Errorf("the upstream saw %v, want %s", up.bodies, body)
		}
	}
}

func TestEvictedLinesCountNoAttempt(t *testing.T) {
	w := newWorld(t)
	var hanging atomic.Int64
	up := serve(t, func(rw http.ResponseWriter, r *http.Request) {
		if hanging.Add(1) <= 16 {
			<-r.Context().Done()
			return
		}
		io.WriteString(rw, okBody)
	}, "m")
	d, stop := w.dispatcher("a", watch(), up.URL)
	id := w.submit(chatLines(16, "m"), nil)
	w.await(id, "hanging", func(store.Batch) bool { return hanging.Load() == 16 })
	seen.Lock()
	seen.evict = true
	seen.Unlock()
	d.Observe("", "m", &flowcontrol.Reading{}) // makes the controller answer anew
	b := w.awaitEnd(id)
	stop()
	if b.State != store.Completed || b.Counts.Completed != 16 {
		t.Errorf("got state %s, counts %+v", b.State, b.Counts)
	}
	if n := len(observed[flowcontrol.Evicted]()); n != 16 {
		t.Errorf("%d lines were evicted, want 16", n)
	}
}

// A proxy that holds whole answers back is recognised, and its runner streams no more.
func TestAProxyThatHoldsAnswersBackIsRecognised(t *testing.T) {
	const tokens = 40
	up := serve(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(200 * time.Millisecond)
		w.Header().Set("Content-Type", "text/event-stream")
		chunk := func(rest string) {
			fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,`+
				`"model":"m",%s}`+"\n\n", rest)
		}
		for range tokens {
			chunk(`"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]`)
		}
		chunk(`"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]`)
		chunk(fmt.Sprintf(`"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":%d,`+
			`"total_tokens":%d}`, tokens, tokens+3))
		fmt.Fprint(w, "data: [DONE]\n\n")
	}, "m")
	w := newWorld(t)
	d, _ := w.dispatcher("a", watch(), up.URL)
	if b := w.awaitEnd(w.submit(chatLines(6, "m"), nil)); b.Counts.Completed != 6 {
		t.Fatalf("got %+v, want all lines completed", b.Counts)
	}
	codes := func() (codes []string) {
		for _, p := range d.Pools() {
			for _, warning := range p.Warnings {
				codes = append(codes, warning.Code)
			}
		}
		return codes
	}
	for deadline := time.Now().Add(10 * time.Second); len(codes()) == 0 &&
		time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
	}
	if diff := cmp.Diff([]string{"streams_buffered"}, codes()); diff != "" {
		t.Errorf("warnings are (-want +got)\n%s", diff)
	}
}
