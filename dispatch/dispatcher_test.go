package dispatch_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

func TestBatchRunsToItsEnd(t *testing.T) {
	w := newWorld(t)
	up := serve(t, nil, "m")
	w.dispatcher("a", nil, up.URL)
	id := w.submit(chatLines(1000, "m"), nil)
	b := w.awaitEnd(id)
	if b.State != store.Completed || b.Counts != (store.Counts{Total: 1000, Completed: 1000}) {
		t.Fatalf("got state %s, counts %+v", b.State, b.Counts)
	}
	if b.Usage == nil || b.Usage.TotalTokens != 10_000 || b.Attempts != 1000 {
		t.Errorf("usage %+v, attempts %d; want 10,000 tokens and 1,000 attempts", b.Usage,
			b.Attempts)
	}
	output, _ := w.results(id)
	for i, r := range output {
		if want := fmt.Sprintf("line-%d", i); r.CustomID != want {
			t.Fatalf("output line %d is of %s, want %s: not in input order", i, r.CustomID, want)
		}
		if string(r.Response.Body) != okBody || r.Response.StatusCode != 200 ||
			!strings.HasPrefix(r.Response.RequestID, "up-batch_req_") {
			t.Fatalf("line %d: %+v", i, r.Response)
		}
	}
	if n := up.requests(); n != 1000 {
		t.Errorf("the upstream saw %d requests, want 1000", n)
	}
	if b.InProgressAt.IsZero() || b.FinalizingAt.IsZero() || b.CompletedAt.IsZero() {
		t.Errorf("a timestamp is missing: %+v", b)
	}
}

func TestBodiesStayUnchanged(t *testing.T) {
	bodies := []string{
		`{"model":"m", "seed":9223372036854775807,"messages":[ {"content":[{"type":"text","text":"\u00e9\ud83d\ude00 é"}],"role":"user"}],"temperature":1.0000}`,
		`{"messages":[],"z":1e400,"a":-0.0,"model":"m","x":"\/<>&` + "\u2028" + `"}`,
	}
	var lines []string
	for i, body := range bodies {
		lines = append(lines, fmt.Sprintf(
			`{"body" : %s , "custom_id":"id \u0061\"%d", "url":"/v1/chat/completions","method":"POST"}`, body, i))
	}
	answer := "{ \"b\":12345678901234567890,\"choices\":[],\r\n \"a\":\"\\u00e9 é\"}"
	w := newWorld(t)
	up := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, answer) }, "m")
	w.dispatcher("a", nil, up.URL)
	id := w.submit(lines, nil)
	w.awaitEnd(id)
	for _, body := range bodies {
		if up.bodies[body] != 1 {
			t.Errorf("the upstream saw %q %d times, want once; it saw %v", body, up.bodies[body],
				up.bodies)
		}
	}
	output, _ := w.results(id)
	want := strings.NewReplacer("\r", " ", "\n", " ").Replace(answer)
	if len(output) != 2 || string(output[0].Response.Body) != want ||
		output[1].CustomID != `id a"1` {
		t.Errorf("got %+v, want the body %q", output, want)
	}
	if content := w.content(w.batch(id).Outputs[0].OutputID); !strings.Contains(string(content),
		`"custom_id":"id \u0061\"0"`) {
		t.Errorf("custom_id was written differently: %s", content)
	}
}

func TestOverridesChangeOnlyTheirMembers(t *testing.T) {
	w := newWorld(t)
	up := serve(t, nil, "m")
	w.dispatcher("a", nil, up.URL)
	id := w.submit([]string{chatLine("a", "m")}, func(b *store.Batch) {
		b.Parameters = &store.Parameters{
			Defaults: []store.ParameterRule{{Parameters: map[string]jsonRaw{"top_p": jsonRaw(
				"0.5")}}, {Model: "other", Parameters: map[string]jsonRaw{"n": jsonRaw("2")}}},
			Overrides: []store.ParameterRule{
				{URL: "/v1/chat/completions", Parameters: map[string]jsonRaw{"model": jsonRaw(
					`"m2"`)}}},
		}
	})
	w.awaitEnd(id)
	want := `{"model":"m2","messages":[{"role":"user","content":"say a"}],"top_p":0.5}`
	if up.bodies[want] != 1 {
		t.Errorf("got %v, want %s", up.bodies, want)
	}
}

func TestFailuresAreClassified(t *testing.T) {
	var tries atomic.Int64
	sheds := map[string]int{}
	w := newWorld(t)
	var up *upstream
	up = serve(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		body := string(raw)
		up.mu.Lock()
		seen := up.bodies[body]
		up.mu.Unlock()
		switch {
		case strings.Contains(body, "say refused"):
			http.Error(w, `{"error":{"message":"no"}}`, 400)
		case strings.Contains(body, "say failing"):
			tries.Add(1)
			http.Error(w, "boom, not JSON", 500)
		case strings.Contains(body, "say recovering") && seen < 3:
			http.Error(w, `{"error":{}}`, 500)
		case strings.Contains(body, "say shed") && seen < 6:
			up.mu.Lock()
			sheds[body]++
			up.mu.Unlock()
			w.Header().Set("Retry-After-Ms", "2")
			http.Error(w, `{"error":{}}`, []int{429, 503}[seen%2])
		case strings.Contains(body, "say garbage"):
			io.WriteString(w, "<html>hello</html>")
		case strings.Contains(body, "say cut") && seen < 2:
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, `{"half":`)
		default:
			io.WriteString(w, okBody)
		}
	}, "m")
	w.dispatcher("a", nil, up.URL)
	id := w.submit([]string{
		chatLine("refused", "m"), chatLine("failing", "m"), chatLine("recovering", "m"),
		chatLine("shed", "m"),
		chatLine("garbage", "m"), chatLine("cut", "m"), chatLine("fine", "m"),
	}, nil)
	b := w.awaitEnd(id)
	if b.State != store.Completed || b.Counts.Completed != 4 || b.Counts.Failed != 3 {
		t.Fatalf("got %s, %+v", b.State, b.Counts)
	}
	_, errs := w.results(id)
	byID := map[string]result{}
	for _, r := range errs {
		byID[r.CustomID] = r
	}
	if r := byID["refused"].Response; r == nil || r.StatusCode != 400 ||
		string(r.Body) != `{"error":{"message":"no"}}` {
		t.Errorf("refused: %+v", r)
	}
	if r := byID["failing"].Response; r == nil || r.StatusCode != 500 ||
		string(r.Body) != `"boom, not JSON\n"` || tries.Load() < 3 || tries.Load() > 4 {
		// The first failure is charged only if another line was answered before.
		t.Errorf("failing after %d tries: %+v", tries.Load(), r)
	}
	if r := byID["garbage"]; r.Response != nil || r.Error == nil ||
		r.Error.Code != "invalid_upstream_answer" || !strings.Contains(r.Error.Message, "hello") {
		t.Errorf("garbage: %+v", r)
	}
}

func TestOutageCountsNoAttempts(t *testing.T) {
	w := newWorld(t)
	up := serve(t, nil, "m")
	addr := up.Listener.Addr().String()
	up.Close()
	w.dispatcher("a", func(_ *dispatch.Config, d *dispatch.Deps) {
		d.Upstreams[0].Models = []string{"m"} // as configured: nobody can be asked
	}, "http://"+addr)
	id := w.submit(chatLines(50, "m"), nil)
	w.await(id, "waiting for the upstream", func(store.Batch) bool {
		return w.waitsFor(id, plan.RunnersDown)
	})
	back := serveAt(t, addr, "m")
	b := w.awaitEnd(id)
	if b.Counts.Completed != 50 || back.requests() != 50 || b.Attempts != 50 {
		t.Errorf("counts %+v, %d requests, %d attempts; want 50 of each", b.Counts, back.requests(),
			b.Attempts)
	}
}

// An engine may report numbers of tokens of which two overflow their sum.
func TestImplausibleUsageIsNotCounted(t *testing.T) {
	up := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"choices":[],"usage":{"prompt_tokens":18446744073709551615,"completion_tokens":3}}`)
	}, "m")
	w := newWorld(t)
	w.dispatcher("a", nil, up.URL)
	b := w.awaitEnd(w.submit(chatLines(20, "m"), nil))
	if b.Counts.Completed != 20 || b.Usage.InputTokens != 0 || b.Usage.OutputTokens != 60 ||
		b.Usage.TotalTokens != 60 {
		t.Errorf("got %+v with %+v, want 20 lines completed with 60 tokens", b.Counts, b.Usage)
	}
}

func TestRestartResumesBatch(t *testing.T) {
	w := newWorld(t)
	gate := make(chan struct{})
	var let atomic.Int64
	up := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if let.Add(1) > 300 {
			select {
			case <-gate:
			case <-r.Context().Done():
				return
			}
		}
		io.WriteString(w, okBody)
	}, "m")
	short := func(cfg *dispatch.Config, _ *dispatch.Deps) {
		cfg.Drain = 50 * time.Millisecond
		cfg.ChunkLines = 64
	}
	_, stop := w.dispatcher("a", short, up.URL)
	id := w.submit(chatLines(1000, "m"), nil)
	w.await(id, "at 300 lines", func(store.Batch) bool { return w.progress(id).Completed >= 300 })
	stop()
	close(gate)
	w.dispatcher("a", short, up.URL)
	b := w.awaitEnd(id)
	w.results(id)
	if b.State != store.Completed || b.Counts.Completed != 1000 {
		t.Errorf("got %s, %+v", b.State, b.Counts)
	}
	if n := up.requests(); n > 1000+16 {
		t.Errorf(
			"%d requests for 1000 lines: more than the 16 in flight at the stop were sent again", n)
	}
}

func TestLostJournalsRunAgain(t *testing.T) {
	w := newWorld(t)
	var answered atomic.Int64
	hang := make(chan struct{})
	up := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if answered.Add(1) > 70 {
			select {
			case <-hang:
			case <-r.Context().Done():
				return
			}
		}
		io.WriteString(w, okBody)
	}, "m")
	_, stop := w.dispatcher("a", func(cfg *dispatch.Config, _ *dispatch.Deps) {
		cfg.ChunkLines, cfg.Drain = 20, 0
	}, up.URL)
	id := w.submit(chatLines(100, "m"), nil)
	w.await(id, "at 70 lines", func(store.Batch) bool { return w.progress(id).Completed == 70 })
	stop()
	if err := w.disk.Journals().Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	close(hang)
	w.dispatcher("a", nil, up.URL)
	if b := w.awaitEnd(id); b.State != store.Completed ||
		b.Counts != (store.Counts{Total: 100, Completed: 100}) || b.FinalizingAt.IsZero() {
		t.Errorf("got %s, %+v", b.State, b.Counts)
	}
	if output, errs := w.results(id); len(output) != 100 || len(errs) != 0 {
		t.Errorf("%d lines completed, %d failed", len(output), len(errs))
	}
}

// unwritableBlobs takes no result files until it is writable.
type unwritableBlobs struct {
	dispatch.Blobs
	writable *atomic.Bool
}

func (b unwritableBlobs) Create(ctx context.Context, key string) (store.BlobWriter, error) {
	if !b.writable.Load() {
		return nil, syscall.EIO
	}
	return b.Blobs.Create(ctx, key)
}

// All chunks were done when the process started that finds the results lost.
func TestJournalsLostWhileFinalizingRunAgain(t *testing.T) {
	up := serve(t, nil, "m")
	w := newWorld(t)
	var writable atomic.Bool
	node := func(_ *dispatch.Config, deps *dispatch.Deps) {
		deps.Blobs = unwritableBlobs{deps.Blobs, &writable}
	}
	_, stop := w.dispatcher("a", node, up.URL)
	id := w.submit(chatLines(20, "m"), nil)
	w.await(id, "finalizing", func(b store.Batch) bool { return b.State == store.Finalizing })
	stop()
	d, _ := w.dispatcher("b", node, up.URL)
	until(t, "the runner is up", func() bool { return len(survey(t, d).Runners) == 1 })
	if err := w.disk.Journals().Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	writable.Store(true)
	if b := w.awaitEnd(id); b.State != store.Completed || b.Counts.Completed != 20 ||
		up.requests() != 40 {
		t.Errorf("got %s, %+v after %d requests", b.State, b.Counts, up.requests())
	}
}

func TestTwoDispatchersShareABatch(t *testing.T) {
	w := newWorld(t)
	up := serve(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Millisecond)
		io.WriteString(w, okBody)
	}, "m")
	small := func(cfg *dispatch.Config, _ *dispatch.Deps) {
		cfg.ChunkLines = 20
		cfg.Plan.LookAhead = 10
	}
	w.dispatcher("a", small, up.URL)
	w.dispatcher("b", small, up.URL)
	var ids []string
	for range 5 {
		ids = append(ids, w.submit(chatLines(400, "m"), nil))
	}
	for _, id := range ids {
		if b := w.awaitEnd(id); b.Counts.Completed != 400 {
			t.Errorf("batch %s: %+v", id, b.Counts)
		}
		w.results(id)
	}
	if n := up.requests(); n != 2000 {
		t.Errorf("%d requests for 2000 lines", n)
	}
}

func TestCancelKeepsResultsAndListsOtherLines(t *testing.T) {
	w := newWorld(t)
	var let atomic.Int64
	up := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if let.Add(1) > 30 {
			<-r.Context().Done() // never answers
			return
		}
		io.WriteString(w, okBody)
	}, "m")
	w.dispatcher("a", func(cfg *dispatch.Config, _ *dispatch.Deps) {
		cfg.CancelGrace = time.Hour // of no importance
	}, up.URL)
	id := w.submit(chatLines(100, "m"), nil)
	w.await(id, "at 30 lines", func(store.Batch) bool { return w.progress(id).Completed == 30 })
	w.modify(id, func(b *store.Batch) {
		b.State, b.Ending, b.CancellingAt = store.Cancelling, store.Cancelled, time.Now()
	})
	b := w.awaitEnd(id)
	_, errs := w.results(id)
	if b.State != store.Cancelled || b.Counts.Completed != 30 || b.CancelledAt.IsZero() ||
		b.NotRun != 70 || b.Counts.Failed != 70 {
		t.Errorf("got %s, %+v, %d not run", b.State, b.Counts, b.NotRun)
	}
	if len(errs) != 70 || errs[0].Error == nil || errs[0].Error.Code != "batch_cancelled" {
		t.Errorf("the rest is not listed: %d lines, first %+v", len(errs), errs)
	}
}

func TestDeadlineExpiresABatch(t *testing.T) {
	w := newWorld(t)
	up := serve(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "m")
	w.dispatcher("a", nil, up.URL)
	id := w.submit(chatLines(40, "m"), func(b *store.Batch) {
		b.Deadline = time.Now().Add(300 * time.Millisecond)
	})
	b := w.awaitEnd(id)
	_, errs := w.results(id)
	if b.State != store.Expired || b.ExpiredAt.IsZero() || len(errs) != 40 ||
		errs[39].Error.Code != "batch_expired" {
		t.Errorf("got %s, %+v, %d error lines", b.State, b.Counts, len(errs))
	}
}

func TestPauseAndResume(t *testing.T) {
	w := newWorld(t)
	up := serve(t, nil, "m")
	w.dispatcher("a", nil, up.URL)
	id := w.submit(chatLines(10, "m"), func(b *store.Batch) { b.Paused = true })
	w.await(id, "paused", func(store.Batch) bool {
		return w.waitsFor(id, plan.Paused)
	})
	if n := up.requests(); n != 0 {
		t.Errorf("%d lines of a paused batch were sent", n)
	}
	w.modify(id, func(b *store.Batch) { b.Paused = false })
	if b := w.awaitEnd(id); b.State != store.Completed {
		t.Errorf("got %s", b.State)
	}
}

func TestLimitsStopABatchCleanly(t *testing.T) {
	refuse := func(w http.ResponseWriter, r *http.Request) { http.Error(w, `{}`, 400) }
	for name, test := range map[string]struct {
		answer  http.HandlerFunc
		options store.Options
		code    string
	}{
		"failed lines": {refuse, store.Options{StopAtFailed: 21}, "max_failed_lines_exceeded"},
		"failed share": {refuse, store.Options{MaxFailedRatio: 0.3}, "max_failed_ratio_exceeded"},
		"tokens":       {nil, store.Options{MaxTotalTokens: 1000}, "max_total_tokens_exceeded"},
		"canary": {refuse, store.Options{Canary: 5, CanaryMaxFailedRatio: 0.5},
			"canary_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			slow := test.answer
			up := serve(t, func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(5 * time.Millisecond) // so that the stop comes before the end
				if slow == nil {
					io.WriteString(w, okBody)
				} else {
					slow(w, r)
				}
			}, "m")
			w.dispatcher("a", nil, up.URL)
			id := w.submit(chatLines(2000, "m"), func(b *store.Batch) { b.Options = test.options })
			b := w.awaitEnd(id)
			_, errs := w.results(id)
			if b.State != store.Failed || len(b.Errors) != 1 || b.Errors[0].Code != test.code ||
				b.Reason == "" {
				t.Errorf("got %s, errors %+v", b.State, b.Errors)
			}
			if last := errs[len(errs)-1]; last.Error == nil || last.Error.Code != "batch_stopped" {
				t.Errorf("the rest is not listed: %+v", last)
			}
			if name == "canary" && up.requests() != 5 {
				t.Errorf("%d lines were sent, want the 5 canaries", up.requests())
			}
		})
	}
}

func TestCanariesReleaseOtherLines(t *testing.T) {
	w := newWorld(t)
	up := serve(t, nil, "m", "n")
	w.dispatcher("a", nil, up.URL)
	lines := append(chatLines(30, "m"), chatLine("other-1", "n"), chatLine("other-2", "n"))
	id := w.submit(lines, func(b *store.Batch) { b.Options.Canary = 4 })
	if b := w.awaitEnd(id); b.State != store.Completed || b.Counts.Completed != 32 {
		t.Errorf("got %s, %+v", b.State, b.Counts)
	}
	w.results(id)
}

func TestSlowModelDelaysNoOther(t *testing.T) {
	w := newWorld(t)
	stuck := make(chan struct{})
	slow := serve(t, func(w http.ResponseWriter, r *http.Request) {
		<-stuck
		io.WriteString(w, okBody)
	}, "slow")
	quick := serve(t, nil, "quick")
	w.dispatcher("a", nil, slow.URL, quick.URL)
	var lines []string
	for i := range 600 {
		lines = append(lines, chatLine(fmt.Sprint(i), []string{"slow", "quick"}[i%2]))
	}
	id := w.submit(lines, nil)
	w.await(id, "done with the quick model", func(store.Batch) bool {
		return w.progress(id).Completed == 300
	})
	close(stuck)
	if b := w.awaitEnd(id); b.Counts.Completed != 600 {
		t.Errorf("got %+v", b.Counts)
	}
	output, _ := w.results(id)
	for i, r := range output {
		if r.CustomID != fmt.Sprint(i) {
			t.Fatalf("output line %d is of %s: not in input order", i, r.CustomID)
		}
	}
}

func TestClockSteps(t *testing.T) {
	w := newWorld(t)
	up := serve(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(2 * time.Millisecond)
		io.WriteString(w, okBody)
	}, "m")
	small := func(cfg *dispatch.Config, _ *dispatch.Deps) {
		cfg.ChunkLines, cfg.Plan.LookAhead, cfg.LeaseTTL = 20, 10, 3*time.Second
	}
	w.dispatcher("a", small, up.URL)
	w.dispatcher("b", small, up.URL)
	id := w.submit(chatLines(2000, "m"), nil)
	for i, step := range []time.Duration{time.Hour, -2 * time.Hour, 24 * time.Hour, 0} {
		w.await(id, "a step further", func(b store.Batch) bool {
			return b.State.Terminal() || w.progress(id).Completed > 300*(i+1)
		})
		w.clock.Store(int64(step))
	}
	b := w.awaitEnd(id)
	w.results(id)
	if b.State != store.Completed || b.Counts.Completed != 2000 {
		t.Errorf("got %s, %+v", b.State, b.Counts)
	}
	// A step forward ends the leases, for either to take over: lines in flight are sent again, not
	// more.
	if n := up.requests(); n > 2000+3*2*16+3*2*20*2 {
		t.Errorf("%d requests for 2000 lines", n)
	}
}

func TestMaxConcurrencyBindsABatch(t *testing.T) {
	w := newWorld(t)
	up := serve(t, func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(time.Millisecond)
		io.WriteString(w, okBody)
	}, "m")
	w.dispatcher("a", nil, up.URL)
	id := w.submit(chatLines(100, "m"), func(b *store.Batch) { b.Options.MaxConcurrency = 3 })
	w.awaitEnd(id)
	if up.most > 3 {
		t.Errorf("%d lines were in flight at once, want at most 3", up.most)
	}
}
