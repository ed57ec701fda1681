package e2e

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// hostile has settings by which lines end soon if their runner never answers correctly.
func hostile(more ...string) []string {
	return with(append([]string{"flowcontrol.fixed.per_runner=24", "dispatch.request_timeout=20s",
		"dispatch.retry.attempts=2", "dispatch.retry.tuning.deaths=2",
		"dispatch.retry.tuning.max=100ms",
		"dispatch.tuning.breaker.base=5ms", "dispatch.tuning.breaker.max=20ms"}, more...)...)
}

// maxMemory protects the machine from a daemon that fails a scenario.
const maxMemory = 1 << 30

// A runner that violates HTTP affects only its own lines.
func TestChaosHostileRunners(t *testing.T) {
	t.Parallel()
	for _, h := range []struct {
		name      string
		lines     int
		handler   RawHandler
		completes bool // all lines must complete
		waits     bool // no answer is one, so that lines wait until the runner is well
		most      int  // attempts allowed per line; default: 3, with two attempts and two deaths
		set       string
	}{
		{name: "endless bodies", lines: sized(8, 24), handler: endlessBody,
			set: "dispatch.request_timeout=8s"},
		{name: "endless header field", lines: 24, handler: endlessHeader},
		{name: "endless header fields", lines: 24, handler: endlessHeaders},
		{name: "endless early hints", lines: 24, handler: endlessHints},
		{name: "endless 100 Continue", lines: 24, handler: endlessContinue},
		{name: "endless chunk extension", lines: 24, handler: endlessChunkExtension},
		{name: "endless trailer", lines: 24, handler: endlessTrailer},
		{name: "answers of 60 MB", lines: sized(6, 24), handler: large(60_000_000)},
		{name: "answers of 60 MB, allowed", lines: sized(6, 24), handler: large(60_000_000),
			set: "dispatch.max_answer_bytes=67108864"},
		{name: "a byte now and then", lines: 24, handler: drip, set: "dispatch.request_timeout=2s"},
		{name: "garbage", lines: 60, handler: garbage},
		{name: "closed after each request", lines: 100, handler: nothing, most: 2},
		{name: "closed after some requests", lines: sized(300, 3000),
			handler: some(`7 \u00e9`, nothing), most: 2},
		{name: "Content-Length too long", lines: 60, handler: announced(+100)},
		{name: "Content-Length too short", lines: 60, handler: announced(-100),
			waits: true, completes: true, most: 20},
		{name: "unsolicited answers", lines: sized(500, 5000), handler: stray},
		{name: "gzip bombs", lines: 24, handler: gzipBomb, waits: true, completes: true,
			most: 20},
		{name: "invented models in answers", lines: sized(2000, 20_000), handler: inventedModel,
			completes: true},
	} {
		t.Run(h.name, func(t *testing.T) {
			tr := begin(t, "runner: "+h.name)
			bad, good := NewRawStub(t, "bad", h.handler), NewStub(t, "good")
			good.MaxDelay = 5 * time.Millisecond
			set := hostile()
			if h.set != "" {
				set = append(set, h.set)
			}
			d := tr.Watch(
				NewDaemon(t, Options{Upstreams: []string{
					bad.URL, good.URL}, Set: set, MaxMemory: maxMemory}))
			c := d.Client()
			lines, others := NewLines("hostile", "bad", h.lines), NewLines("other", "good", 300)
			tr.Tried = h.lines
			b, other := c.Submit(t, lines.Content, ""), c.Submit(t, others.Content, "")

			c.CheckComplete(t, c.AwaitEnd(t, other.ID, 20*time.Second), others)
			if h.waits {
				c.Await(t, b.ID, time.Minute, func(b Batch) bool {
					return b.WaitsFor("runners_failing")
				})
				bad.SetHandler(AnswerCorrectly)
			}
			b = c.AwaitEnd(t, b.ID, time.Minute)
			checkHostile(t, tr, d, bad, b, lines, cmp.Or(h.most, 3))
			if h.completes {
				c.CheckComplete(t, b, lines)
			}

			bad.SetHandler(AnswerCorrectly)
			after := NewLines("after", "bad", 50)
			c.CheckComplete(t, c.AwaitEnd(t, c.Submit(t, after.Content, "").ID, 20*time.Second),
				after)
			if !d.Alive() {
				t.Error("the daemon ended")
			}
		})
	}
}

// checkHostile checks that each line of a batch is in the result files once, none with the answer
// to another line, and that every request that the runner received was counted.
func checkHostile(
	t *testing.T, tr *Trial, d *Daemon, bad *RawStub, b Batch, lines Lines, most int,
) {
	t.Helper()
	output, failed := d.Client().Results(t, b)
	seen, wrong := map[string]int{}, 0
	for _, r := range append(output, failed...) {
		seen[r.CustomID]++
		if r.Response != nil {
			if digest := answerDigest(r.Response.Body); digest != "" && digest != Digest(
				[]byte(lines.Bodies[r.CustomID])) {
				wrong++
			}
		}
	}
	for id := range lines.Bodies {
		if n := seen[id]; n == 0 {
			tr.Lost++
		} else if n > 1 {
			tr.Doubled++
		}
	}
	if tr.Lost+tr.Doubled+wrong > 0 {
		t.Errorf(
			"of %d lines %d are in no result file, %d more than once, %d with the answer to "+
				"another", len(lines.Bodies), tr.Lost, tr.Doubled, wrong)
	}
	d.Verify(t, b.ID)
	sent, oftenest := 0, 0
	for _, n := range bad.Wire() {
		sent += n
		oftenest = max(oftenest, n)
	}
	tr.Resent = max(0, sent-len(lines.Bodies))
	if int64(sent) > b.Tidefill.Attempts {
		t.Errorf("the runner received %d requests of %d lines, and attempts is %d", sent,
			len(lines.Bodies), b.Tidefill.Attempts)
	}
	if oftenest > most {
		t.Errorf("one line was sent %d times, want at most %d", oftenest, most)
	}
}

// Model names that a runner invents take no more memory than a few.
func TestChaosRunnerInventsModels(t *testing.T) {
	long(t, "a fault of the suite of chaos")
	t.Parallel()
	tr := begin(t, "runner: invented models in listings")
	bad := NewRawStub(t, "m", AnswerCorrectly)
	var requested atomic.Int64
	bad.List(func() string {
		n := requested.Add(1)
		var list strings.Builder
		list.WriteString(`{"object":"list","data":[{"id":"m","object":"model"}`)
		for i := range 5000 {
			fmt.Fprintf(&list, `,{"id":"invented-%d-%d-%s","object":"model"}`, n, i, strings.Repeat(
				"x", 100))
		}
		return list.String() + "]}"
	})
	admin := freeAddress(t)
	d := tr.Watch(NewDaemon(t, Options{Upstreams: []string{bad.URL}, Admin: admin,
		Set: with("dispatch.tuning.models_every=1s"), MaxMemory: maxMemory}))
	c := d.Client()
	listings := sized[int64](8, 60)
	for n := 0; requested.Load() < listings; n++ {
		lines := NewLines(fmt.Sprint("invented-", n), "m", 100)
		c.CheckComplete(t, c.AwaitEnd(t, c.Submit(t, lines.Content, "").ID, 20*time.Second), lines)
	}
	tr.Tried = int(requested.Load())
	if page := metricsOf(t, admin); len(page) > MiB {
		t.Errorf("/metrics has %d bytes", len(page))
	}
	if answer, err := c.Do("GET", "/v1/models", "", nil); err != nil ||
		answer.Status != http.StatusOK || len(answer.Body) > 2*MiB {
		t.Errorf("/v1/models: status %d, %d bytes, %v", answer.Status, len(answer.Body), err)
	}
	// Without a limit, the names of a few seconds took hundreds of megabytes.
	if peak := d.Peak(); peak > 256*MiB {
		t.Errorf("the daemon used %d MiB", peak/MiB)
	}
}

// A batch ends although one of its lines is always shed while others succeed.
func TestChaosLineAlwaysShed(t *testing.T) {
	long(t, "a fault of the suite of chaos")
	t.Parallel()
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			tr := begin(t, fmt.Sprintf("runner: one line always %d", status))
			stub := NewStub(t, "m")
			stub.MaxDelay = 5 * time.Millisecond
			var sheds atomic.Int64
			stub.Intercept(func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
				if !strings.Contains(string(body), "shed-7 ") {
					return false
				}
				sheds.Add(1)
				w.WriteHeader(status)
				return true
			})
			d := tr.Watch(NewDaemon(t, Options{Upstreams: []string{stub.URL}, Set: with(
				"dispatch.retry.tuning.max=50ms")}))
			c := d.Client()
			lines := NewLines("shed", "m", 50)
			b := c.Submit(t, lines.Content, "")
			deadline := time.Now().Add(30 * time.Second)
			for n := 0; !b.Ended() && time.Now().Before(deadline); n++ {
				rest := NewLines(fmt.Sprint("rest-", n), "m", 500)
				c.CheckComplete(
					t, c.AwaitEnd(t, c.Submit(t, rest.Content, "").ID, 20*time.Second),
					rest)
				var err error
				if b, err = c.Batch(b.ID); err != nil {
					t.Fatal(err)
				}
			}
			tr.Tried = int(sheds.Load())
			if !b.Ended() {
				t.Fatalf(
					"the line was shed %d times while others succeeded, and its batch is %s, %+v",
					sheds.Load(), b.Status, b.RequestCounts)
			}
			sum := c.CheckOnce(t, b, lines)
			tr.Lost, tr.Doubled = sum.Lost, sum.Doubled
			if sum.Output != 49 || sum.Failed != 1 {
				t.Errorf("%d lines completed and %d failed, want 49 and 1", sum.Output, sum.Failed)
			}
			d.Verify(t, b.ID)
			t.Logf("the line was given up after %d sheds", sheds.Load())
		})
	}
}

// A complete outage costs no attempts.
func TestChaosEverythingShedForAWhile(t *testing.T) {
	long(t, "a fault of the suite of chaos")
	t.Parallel()
	tr := begin(t, "runner: all lines 503 for a while")
	stub := NewStub(t, "m")
	stub.MaxDelay = 5 * time.Millisecond
	var out atomic.Bool
	out.Store(true)
	stub.Intercept(func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		if out.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return out.Load()
	})
	d := tr.Watch(NewDaemon(t, Options{Upstreams: []string{stub.URL},
		Set: with("dispatch.retry.tuning.max=50ms", "dispatch.retry.attempts=1")}))
	c := d.Client()
	lines := NewLines("outage", "m", 300)
	b := c.Submit(t, lines.Content, "")
	time.Sleep(sized(8*time.Second, time.Minute))
	tr.Tried = stub.Requests()
	out.Store(false)
	c.CheckComplete(t, c.AwaitEnd(t, b.ID, 30*time.Second), lines)
	d.Verify(t, b.ID)
}
