package dispatch_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/dispatch"
	upstreams "github.com/tidefill/tidefill/dispatch/upstream"
	"github.com/tidefill/tidefill/store"
)

// speaking runs lines on an upstream with a dialect and returns the bodies that it got.
func speaking(
	t *testing.T, dialect dispatch.Dialect, answer http.HandlerFunc, change func(*store.Batch),
	lines ...string,
) (bodies []string, done store.Batch) {
	t.Helper()
	up := serve(t, answer, "m")
	w := newWorld(t)
	w.dispatcher("a", func(_ *dispatch.Config, d *dispatch.Deps) {
		d.Upstreams = []dispatch.Upstream{{URL: up.URL, Dialect: dialect}}
	})
	done = w.awaitEnd(w.submit(lines, change))
	up.mu.Lock()
	defer up.mu.Unlock()
	return slices.Sorted(maps.Keys(up.bodies)), done
}

func answerOK(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, okBody) }

func bodyLine(id, url, body string) string {
	return `{"custom_id":"` + id + `","method":"POST","url":"` + url + `","body":` + body + `}`
}

// The engine's priority is added only where it is configured and the body has none. No other byte
// changes.
func TestEnginePriority(t *testing.T) {
	const chat = "/v1/chat/completions"
	plain := `{ "model":"m","messages":[{"role":"user","content":"a\u0062"}],"n":1.0}`
	for name, c := range map[string]struct {
		priority upstreams.EnginePriority
		url      string
		body     string
		want     string
	}{
		"off":     {"", chat, plain, plain},
		"vllm":    {upstreams.VLLMPriority, chat, plain, plain[:len(plain)-1] + `,"priority":100}`},
		"sglang":  {upstreams.SGLangPriority, chat, plain, plain[:len(plain)-1] + `,"priority":-100}`},
		"its own": {upstreams.VLLMPriority, chat, `{"model":"m","messages":[],"priority":7}`, `{"model":"m","messages":[],"priority":7}`},
		"embeddings": {upstreams.VLLMPriority, "/v1/embeddings", `{"model":"m","input":"x"}`,
			`{"model":"m","input":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := speaking(t, dispatch.Dialect{EnginePriority: c.priority}, answerOK, nil,
				bodyLine("a", c.url, c.body))
			if diff := cmp.Diff([]string{c.want}, got); diff != "" {
				t.Errorf("bodies (-want +got):\n%s", diff)
			}
		})
	}
}

// What the batch's parameters say about the priority wins.
func TestParametersOfBatchesKeepTheirPriority(t *testing.T) {
	got, _ := speaking(t, dispatch.Dialect{EnginePriority: upstreams.VLLMPriority}, answerOK,
		func(b *store.Batch) {
			b.Parameters = &store.Parameters{Defaults: []store.ParameterRule{{
				Parameters: map[string]json.RawMessage{"priority": json.RawMessage("5")}}}}
		}, bodyLine("a", "/v1/chat/completions", `{"model":"m","messages":[]}`))
	if want := `{"model":"m","messages":[],"priority":5}`; len(got) != 1 || got[0] != want {
		t.Errorf("got bodies %q, want %q", got, want)
	}
}

// An engine that refuses the member, as SGLang can be set to, fails no line: it gets none from then
// on.
func TestRefusedPriorityIsLeftOut(t *testing.T) {
	refuse := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"priority"`) {
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":{"message":"Using Priority is disabled"}}`)
			return
		}
		io.WriteString(w, okBody)
	}
	lines := chatLines(40, "m")
	lines = append(lines, bodyLine("own", "/v1/chat/completions",
		`{"model":"m","messages":[],"priority":1}`))
	bodies, done := speaking(t, dispatch.Dialect{EnginePriority: upstreams.SGLangPriority}, refuse,
		nil, lines...)
	if done.Counts.Completed != 40 || done.Counts.Failed != 1 {
		t.Errorf("got %+v, want all done but the line with a priority of its own", done.Counts)
	}
	with := 0
	for _, b := range bodies {
		if strings.Contains(b, `"priority":-100`) {
			with++
		}
	}
	if with == 0 || with > 16 { // as many as run at once
		t.Errorf("%d lines were sent with a priority, want some at first", with)
	}
}

// Headers of gateways and caches are sent only where they are configured.
func TestDialectHeaders(t *testing.T) {
	var mu sync.Mutex
	got := map[string]map[string]bool{}
	record := func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		for key := range r.Header {
			if strings.Contains(key, "Inference") || strings.HasPrefix(key, "X-") &&
				key != "X-Request-Id" {
				if got[key] == nil {
					got[key] = map[string]bool{}
				}
				got[key][r.Header.Get(key)] = true
			}
		}
		io.WriteString(w, okBody)
	}
	tenant := func(b *store.Batch) { b.Tenant = "research" }
	long := strings.Repeat("the same beginning ", 100)
	line := func(id, prompt string) string {
		return bodyLine(id, "/v1/chat/completions",
			`{"model":"m","messages":[{"role":"user","content":"`+prompt+`"}]}`)
	}
	all := dispatch.Dialect{CacheHeaders: true, Objective: "night", Fairness: "tenant"}
	speaking(t, all, record, tenant, line("a", long+"one"), line("b", long+"two"),
		line("c", "another"),
		bodyLine("d", "/v1/moderations", `{"model":"m","input":"x"}`))
	mu.Lock()
	defer mu.Unlock()
	tags := len(got["X-Cache-Tag"])
	for tag := range got["X-Cache-Tag"] {
		if len(tag) > 64 {
			t.Errorf("tag %q is longer than 64 characters", tag)
		}
	}
	delete(got, "X-Cache-Tag")
	want := map[string]map[string]bool{
		"X-Priority": {"low": true}, "X-Cache-Mode": {"prefix": true},
		"X-Llm-D-Inference-Objective":     {"night": true},
		"X-Gateway-Inference-Objective":   {"night": true},
		"X-Llm-D-Inference-Fairness-Id":   {"research": true},
		"X-Gateway-Inference-Fairness-Id": {"research": true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	if tags < 2 || tags > 3 {
		t.Errorf("got %d tags, want one for both lines with the same beginning and others", tags)
	}
	clear(got)
	mu.Unlock()
	speaking(t, dispatch.Dialect{}, record, tenant, line("a", long))
	mu.Lock()
	if diff := cmp.Diff(map[string]map[string]bool{"X-Priority": {"low": true}}, got); diff != "" {
		t.Errorf("headers by default (-want +got):\n%s", diff)
	}
}

// What headers of answers say is counted; a drop without load is no shed.
func TestReportsOfAnswers(t *testing.T) {
	drops := []string{"rejected-saturated", "rejected-no-endpoints", "evicted-priority", "surprise"}
	var mu sync.Mutex
	answer := func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("X-Queue-Wait-Ms", "150")
		w.Header().Set("X-GPU-Time-Ms", "450")
		if len(drops) == 0 {
			io.WriteString(w, okBody)
			return
		}
		w.Header().Set("x-llm-d-request-dropped-reason", drops[0])
		w.Header().Set("X-GPU-Time-Ms", "-1")
		drops = drops[1:]
		w.WriteHeader(http.StatusTooManyRequests)
	}
	up := serve(t, answer, "m")
	w := newWorld(t)
	registry := prometheus.NewRegistry()
	w.dispatcher("a", func(_ *dispatch.Config, d *dispatch.Deps) {
		d.Upstreams = []dispatch.Upstream{{URL: up.URL, Name: "r"}}
		d.Registerer = registry
	})
	if b := w.awaitEnd(w.submit(chatLines(1, "m"), nil)); b.Counts.Completed != 1 {
		t.Fatalf("got %+v, want the line completed", b.Counts)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got, waits := map[string]float64{}, uint64(0)
	for _, f := range families {
		for _, m := range f.Metric {
			switch name := f.GetName(); name {
			case "tidefill_requests_total", "tidefill_requests_dropped_total",
				"tidefill_runner_gpu_seconds_total":
				if m.Counter.GetValue() > 0 {
					got[strings.TrimPrefix(name, "tidefill_")+" "+m.Label[0].GetValue()] =
						m.Counter.GetValue()
				}
			case "tidefill_runner_queue_wait_seconds":
				waits = m.Histogram.GetSampleCount()
			}
		}
	}
	want := map[string]float64{
		"requests_total succeeded": 1, "requests_total shed": 3, "requests_total unreachable": 1,
		"requests_dropped_total evicted": 1, "requests_dropped_total other": 1,
		"requests_dropped_total rejected-no-endpoints": 1,
		"requests_dropped_total rejected-saturated":    1,
		"runner_gpu_seconds_total r":                   0.45,
	}
	if diff := cmp.Diff(want, got); diff != "" || waits != 5 {
		t.Errorf("metrics (-want +got):\n%s\n%d waits, want 5", diff, waits)
	}
}
