package emulator

import (
	"encoding/json"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/tidefill/tidefill/simulator/engine"
)

// driven is a runner whose engine runs in virtual time.
type driven struct {
	t   *testing.T
	s   *Server
	l   *engineLoop
	now time.Time
}

func drive(t *testing.T, e Engine, change ...func(*Config)) *driven {
	c := DefaultConfig()
	c.Profile, c.Engine, c.Models = "llama-8b-a100", e, []string{"m"}
	c.MaxBatchedTokens = 512
	for _, f := range change {
		f(&c)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &driven{t, s, s.loop, s.loop.clock.start.Round(0)}
}

// submit adds a request.
func (d *driven) submit(prompt, output int, streaming bool) *ticket {
	d.t.Helper()
	d.l.lastID++
	x := &ticket{id: d.l.lastID, prompt: prompt, submitted: d.now, streaming: streaming,
		finish: finishLength, changed: make(chan struct{}, 1)}
	d.l.tickets[x.id] = x
	d.advance(0)
	if err := d.l.engine.Submit(d.now, engine.Request{ID: x.id, Prompt: prompt,
		Output: output}); err != nil {
		d.t.Fatal(err)
	}
	d.advance(0)
	return x
}

// advance lets time pass.
func (d *driven) advance(by time.Duration) {
	d.now = d.now.Add(by)
	d.l.engine.Advance(d.now, d.l.deliver)
}

// iterate lets one iteration end.
func (d *driven) iterate() {
	next, busy := d.l.engine.Next()
	if !busy {
		d.t.Fatal("the engine is idle")
	}
	d.advance(next.Sub(d.now))
}

// page returns what a scrape shows.
func (d *driven) page() page {
	return d.s.metrics.exporter.page(d.now, d.l.engine.Snapshot(d.now))
}

// observations returns what a histogram has counted.
func observations(t *testing.T, h prometheus.Histogram) (count int, sum float64) {
	t.Helper()
	var m dto.Metric
	if err := h.Write(&m); err != nil {
		t.Fatal(err)
	}
	return int(m.Histogram.GetSampleCount()), m.Histogram.GetSampleSum()
}

func counted(t *testing.T, h prometheus.Histogram) int {
	t.Helper()
	n, _ := observations(t, h)
	return n
}

func TestVLLMFreezesAfterAborts(t *testing.T) {
	d := drive(t, VLLM)
	var all []*ticket
	for range 3 {
		all = append(all, d.submit(100, 1000, true))
	}
	d.advance(time.Second)
	for _, x := range all {
		d.l.abort(d.now, x)
	}
	d.advance(10 * time.Minute)
	if p := d.page(); p.gauges.Running != 3 || p.gauges.KVBlocksUsed < 3*100/engine.BlockSize {
		t.Errorf("after all was aborted %d requests run with %d blocks, want 3 as before",
			p.gauges.Running, p.gauges.KVBlocksUsed)
	}
	d.submit(100, 2, true)
	d.advance(time.Second)
	if p := d.page(); p.gauges.Running != 0 || p.gauges.KVBlocksUsed != 0 {
		t.Errorf("a request later %d run with %d blocks", p.gauges.Running, p.gauges.KVBlocksUsed)
	}
	x := d.s.metrics.exporter.(*vllm)
	if n := counted(t, x.request); n != 1 {
		t.Errorf("%d requests are counted, want 1: aborted ones are not", n)
	}
}

func TestVLLMCountsStepsWithOutput(t *testing.T) {
	d := drive(t, VLLM)
	x := d.s.metrics.exporter.(*vllm)
	d.submit(2000, 3, true) // four iterations of 512 tokens
	before := 0
	for i := range 3 {
		d.iterate()
		p := d.page()
		if n := counted(t, x.iteration); n != 0 || p.began.prompt != 0 {
			t.Errorf("after part %d of a prompt: %d steps, %d tokens, want none", i+1, n,
				p.began.prompt)
		}
		if p.counters.PrefixQueries != 2000 {
			t.Errorf("%d tokens were looked up, want 2000 from the admission on",
				p.counters.PrefixQueries)
		}
		if p.gauges.KVBlocksUsed < before || p.gauges.Running != 1 {
			t.Errorf("part %d: %d blocks, %d running", i+1, p.gauges.KVBlocksUsed,
				p.gauges.Running)
		}
		before = p.gauges.KVBlocksUsed
	}
	d.iterate()
	if n, sum := observations(t, x.iteration); n != 1 || sum != 2001 {
		t.Errorf("first token: %d steps of %v tokens, want one of 2001", n, sum)
	}
	if p := d.page(); p.began.prompt != 2000 || counted(t, x.gap) != 0 {
		t.Errorf("first token: %d prompt tokens, %d gaps; want 2000 and none", p.began.prompt,
			counted(t, x.gap))
	}
	d.submit(100, 100, true)
	d.iterate()
	d.iterate()
	if n := counted(t, x.gap); n != 2 || counted(t, x.request) != 1 {
		t.Errorf("%d gaps and %d ended requests, want 2 and 1", n, counted(t, x.request))
	}
}

func TestVLLMCountsStepsInEachAPIServer(t *testing.T) {
	d := drive(t, VLLM, func(c *Config) { c.APIServers = 2 })
	x := d.s.metrics.exporter.(*vllm)
	for range 3 {
		d.submit(100, 2, true)
	}
	d.advance(time.Second) // the first prompt's iteration begins before the others come
	if n, sum := observations(t, x.iteration); n != 1+2+2 || sum != 3*(100+2) {
		t.Errorf("three iterations are counted as %d with %v tokens, want 5 with 306", n, sum)
	}
	if n := counted(t, x.gap); n != 3 {
		t.Errorf("%d gaps between tokens, want one for each request", n)
	}
}

func TestSGLangRefreshesGaugesSeldom(t *testing.T) {
	d := drive(t, SGLang)
	d.submit(100, 200, true)
	d.iterate()
	d.submit(100, 10, true)
	d.iterate() // the present iteration, and that of the second prompt
	d.iterate()
	if p := d.page(); p.gauges.Running != 2 {
		t.Fatalf("after a prompt %d run, want 2", p.gauges.Running)
	}
	x := d.s.metrics.exporter.(*sglang)
	for x.decodes%decodeLogInterval != decodeLogInterval-1 {
		d.iterate()
	}
	if p := d.page(); p.gauges.Running != 2 || d.l.engine.Snapshot(d.now).Running != 1 {
		t.Errorf("before the 40th iteration %d run, want 2 although one has ended",
			p.gauges.Running)
	}
	d.iterate()
	if p := d.page(); p.gauges.Running != 1 {
		t.Errorf("after the 40th iteration %d run, want 1", p.gauges.Running)
	}
	for d.l.engine.Snapshot(d.now).Running > 0 {
		d.iterate()
	}
	d.advance(idleLogInterval - time.Second)
	if p := d.page(); p.gauges.Running != 1 {
		t.Errorf("29 s idle: %d run, want 1 still", p.gauges.Running)
	}
	d.advance(time.Second)
	if p := d.page(); p.gauges.Running != 0 || p.gauges.KVBlocksUsed != 0 {
		t.Errorf("30 s idle: %d run with %d blocks", p.gauges.Running, p.gauges.KVBlocksUsed)
	}
}

func TestSGLangShowsPartsOfPrompts(t *testing.T) {
	d := drive(t, SGLang)
	d.submit(2000, 50, true)
	for i := range 3 {
		d.iterate()
		p := d.page()
		if got, want := p.counters.PrefilledTokens, uint64(512*(i+1)); got != want {
			t.Errorf("after part %d: %d tokens computed, want %d", i+1, got, want)
		}
	}
	d.iterate()
	d.iterate()
	if p := d.page(); p.ended != (tokens{}) || p.counters.GeneratedTokens-p.began.requests != 1 {
		t.Errorf("while it decodes: ended %+v, %d decoded", p.ended, p.counters.GeneratedTokens)
	}
	d.advance(time.Minute)
	if p := d.page(); p.ended != (tokens{1, 2000, 0, 50}) {
		t.Errorf("at its end: %+v", p.ended)
	}
}

func TestSGLangReportsAnswersThatAreNotStreamedInParts(t *testing.T) {
	for streaming, want := range map[bool]struct{ first, gaps int }{true: {1, 120},
		false: {1, 71}} {
		d := drive(t, SGLang)
		x := d.s.metrics.exporter.(*sglang)
		d.submit(100, 121, streaming)
		d.iterate()
		if n := counted(t, x.firstToken[streaming]); (n == 1) != streaming {
			t.Errorf("streaming %v: %d first tokens after one token", streaming, n)
		}
		d.advance(time.Minute)
		n, sum := observations(t, x.gap)
		if n != want.gaps || counted(t, x.firstToken[streaming]) != want.first ||
			counted(t, x.firstToken[!streaming]) != 0 {
			t.Errorf("streaming %v: %d gaps, want %d", streaming, n, want.gaps)
		}
		if mean := 1000 * sum / float64(n); mean < 12 || mean > 13 {
			t.Errorf("streaming %v: mean gap %.2f ms, want 12.35", streaming, mean)
		}
	}
}

func TestTensorRTLLMCountsAtTheEnd(t *testing.T) {
	d := drive(t, TensorRTLLM)
	x := d.s.metrics.exporter.(*tensorrtLLM)
	d.submit(100, 400, true)
	d.iterate()
	if p := d.page(); p.gauges.Running != 1 { // the first bunch
		t.Errorf("%d run, want 1", p.gauges.Running)
	}
	d.submit(100, 10, true)
	d.advance(100 * time.Millisecond)
	if p := d.page(); p.gauges.Running != 1 || d.l.engine.Snapshot(d.now).Running != 2 {
		t.Errorf("within a bunch %d run, want 1 as in the last although there are 2",
			p.gauges.Running)
	}
	d.advance(800 * time.Millisecond)
	if p := d.page(); p.gauges.Running != 1 || p.ended.requests != 1 {
		t.Errorf("before the next bunch %d run and %d ended, want 1 as in the last",
			p.gauges.Running, p.ended.requests)
	}
	d.advance(200 * time.Millisecond)
	d.submit(100, 400, true)
	d.advance(time.Second)
	p := d.page()
	if p.gauges.Running != 2 || p.step < 10*time.Millisecond {
		t.Errorf("in the next bunch %d run, a step takes %v", p.gauges.Running, p.step)
	}
	if want := (tokens{1, 100, 0, 10}); p.ended != want {
		t.Errorf("ended %+v, want %+v", p.ended, want)
	}
	d.advance(time.Minute)
	if n := counted(t, x.perToken); n != 3 || d.page().ended.output != 810 {
		t.Errorf("%d requests, %d tokens at the end", n, d.page().ended.output)
	}
	if p := d.page(); p.gauges.Running != 0 {
		t.Errorf("%d run at the end", p.gauges.Running)
	}
}

func TestTensorRTLLMServesIterationsOnce(t *testing.T) {
	d := drive(t, TensorRTLLM)
	d.submit(100, 5, true)
	d.advance(time.Second)
	read := func() (stats []iterationStats) {
		w := httptest.NewRecorder()
		d.s.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		if err := json.Unmarshal(w.Body.Bytes(), &stats); err != nil || stats == nil {
			t.Fatalf("%v: %s", err, w.Body)
		}
		return stats
	}
	if stats := read(); len(stats) != 5 || stats[0].NumActiveRequests != 1 ||
		stats[0].IterLatencyMS < 10 || stats[4].Iter != 5 {
		t.Errorf("iterations %+v", stats)
	}
	if stats := read(); len(stats) != 0 {
		t.Errorf("read again: %+v", stats)
	}
	for range 2 {
		d.submit(100, 600, true)
		d.advance(time.Minute)
	}
	if stats := read(); len(stats) != maxIterationStats || stats[999].Iter != 1205 {
		t.Errorf("%d iterations are kept, want the last %d", len(stats), maxIterationStats)
	}
	w := httptest.NewRecorder()
	d.s.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/prometheus/metrics", nil))
	if w.Code != 200 {
		t.Errorf("/prometheus/metrics: %d", w.Code)
	}
}
