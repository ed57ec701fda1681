package inline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/httpserver"
)

// bodies are requests of all routes.
var bodies = map[string]string{
	"/v1/chat/completions": `{"messages":[{"role":"user","content":"Wie ist die Flut?"}],` +
		`"model" : "m","max_tokens":12}`,
	"/v1/completions": `{"model":"m","prompt":"the tide","max_tokens":12}`,
	"/v1/responses":   `{"model":"m","input":"the tide","max_output_tokens":12}`,
	"/v1/embeddings":  `{"input":["a","b"],"model":"m"}`,
	"/v1/rerank":      `{"model":"m","query":"tide","documents":["a","b"]}`,
	"/v1/score":       `{"model":"m","text_1":"tide","text_2":["a","b"]}`,
	"/v1/moderations": `{"input":"calm","model":"m"}`,
}

var streamed = []string{"/v1/chat/completions", "/v1/completions", "/v1/responses"}

// streaming returns a body that asks for a stream with its usage.
func streaming(path, body string) string {
	options := `,"stream":true}`
	if path != responsesURL {
		options = `,"stream":true,"stream_options":{"include_usage":true}}`
	}
	return strings.TrimSuffix(body, "}") + options
}

// volatile are the ids and times of an emulated answer.
var volatile = regexp.MustCompile(`"(id|created|created_at|item_id|completed_at)":("[^"]*"|\d+)`)

// direct sends a request to an engine.
func direct(t *testing.T, url, body string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Request-Id", "req-1")
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

func TestAnswersAreThoseOfTheEngine(t *testing.T) {
	engine := startRunner(t)
	all := newRunners(t, engine)
	s := newService(t, all, nil)
	check := func(path, body string) {
		t.Helper()
		want, wantText := direct(t, engine+path, body)
		got, gotText := s.post(path, body, func(r *http.Request) {
			r.Header.Set("X-Request-Id", "req-1")
		})
		if got.StatusCode != want.StatusCode || got.Header.Get("Content-Type") !=
			want.Header.Get("Content-Type") || got.ContentLength != want.ContentLength {
			t.Errorf("%s: got %d %v %d, want %d %v %d", path, got.StatusCode, got.Header,
				got.ContentLength, want.StatusCode, want.Header, want.ContentLength)
		}
		if a, b := volatile.ReplaceAllString(gotText, ""), volatile.ReplaceAllString(wantText,
			""); a != b {
			t.Errorf("%s: got\n%s\nwant\n%s", path, a, b)
		}
		if ids := got.Header.Values("X-Request-Id"); len(ids) != 1 || ids[0] != "req-1" {
			t.Errorf("%s: request ids %q", path, ids)
		}
		report := all.end(t)
		usage := strings.Contains(wantText, "prompt_tokens\"") ||
			strings.Contains(wantText, "input_tokens\"")
		if report.Outcome != plan.Succeeded || report.Status != 200 ||
			usage != (report.PromptTokens > 0) {
			t.Errorf("%s: reported %+v", path, report)
		}
	}
	for path, body := range bodies {
		check(path, body)
	}
	for _, path := range streamed {
		spoke, tokens := all.spoke, all.tokens
		check(path, streaming(path, bodies[path]))
		if all.spoke != spoke+1 || all.tokens < tokens+8 {
			t.Errorf("%s: first tokens %d, then %d", path, all.spoke-spoke, all.tokens-tokens)
		}
		if got := all.end(t).OutputTokens; got != 12 {
			t.Errorf("%s: counted %d tokens", path, got)
		}
	}
}

// A stream passes byte for byte, however it is cut.
func TestStreamIsByteForByte(t *testing.T) {
	const text = ": ping\r\n\r\nid: 1\r\ndata: " +
		"{\"choices\":[{\"delta\":{\"content\":\"\\u00fc ü\"}}]}\r\n\r\n" +
		"data:[DONE]\n\nrest without an end"
	engine := startEngine(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for i := range len(text) {
			io.WriteString(w, text[i:i+1])
			http.NewResponseController(w).Flush()
		}
	})
	s := newService(t, newRunners(t, engine), nil)
	answer, got := s.post("/v1/chat/completions", `{"model":"m","messages":[],"stream":true}`)
	if got != text || answer.Header.Get("Content-Type") != "text/event-stream; charset=utf-8" {
		t.Errorf("got %q with %v", got, answer.Header)
	}
}

func TestRunnerGetsTheRequest(t *testing.T) {
	type seen struct {
		header http.Header
		url    string
		host   string
		body   string
	}
	requests := make(chan seen, 1)
	engine := startEngine(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests <- seen{r.Header, r.URL.String(), r.Host, string(body)}
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Alt-Svc", "h3")
		w.Header().Set("X-Request-Id", "of the engine")
		w.Header().Set("X-Ratelimit-Remaining-Requests", "9999")
		w.Header().Set("Connection", "X-Hop")
		w.Header().Set("X-Hop", "1")
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "{}")
		w.Header().Set("X-Sum", "7")
	})
	s := newService(t, newRunners(t, engine+"/prefix/"), nil)
	limits := api.DefaultConfig()
	limits.RequestsPerMinute = 60
	s.api.SetConfig(limits)
	const body = "{ \"model\":\"m\" ,\n\"messages\":[], \"x\": 1.50e+3}"
	answer, _ := s.post("/v1/chat/completions?a=b", body, func(r *http.Request) {
		for name, value := range map[string]string{"Traceparent": "00-1", "Tracestate": "a=b",
			"X-Request-Id": "mine", "Cookie": "c", "X-Api-Key": "k", "Origin": s.url,
			"X-Forwarded-For": "1.2.3.4", "Forwarded": "for=1.2.3.4", "Te": "trailers",
			"Connection": "X-Drop", "X-Drop": "1", "Accept-Encoding": "gzip", "X-Own": "kept",
			"X-Cache-Tag": "t", "X-Priority": "high"} {
			r.Header.Set(name, value)
		}
	})
	got := <-requests
	if got.body != body || got.url != "/prefix/v1/chat/completions?a=b" ||
		!strings.HasPrefix(engine, "http://"+got.host) {
		t.Errorf("the runner got %+v", got)
	}
	for name, want := range map[string]string{"Traceparent": "00-1", "Tracestate": "a=b",
		"X-Request-Id": "mine", "Cookie": "", "X-Api-Key": "", "Origin": "", "Forwarded": "",
		"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http", "Te": "trailers",
		"X-Forwarded-Host": s.address, "X-Drop": "", "Connection": "", "X-Own": "kept",
		"Accept-Encoding": "", "Authorization": "Bearer of-the-engine", "X-Priority": "",
		"X-Cache-Tag": saltOf("tenant-a").value + ".t", "Content-Type": "application/json"} {
		if value := strings.Join(got.header.Values(name), "|"); value != want {
			t.Errorf("the runner got %s: %q, want %q", name, value, want)
		}
	}
	for name, want := range map[string]string{"Access-Control-Allow-Origin": "", "Alt-Svc": "",
		"X-Request-Id": "mine", "X-Hop": "", "X-Queue-Wait-Ms": "3", "X-Tidefill-Class": "flex",
		"X-Tidefill-Target": "m", "X-Tidefill-Wait-Reason": "at_limit",
		"X-Tidefill-Use-Case": "", "Openai-Version": "2020-10-01",
		"X-Ratelimit-Limit-Requests": "60", "X-Ratelimit-Remaining-Requests": "59"} {
		if value := strings.Join(answer.Header.Values(name), "|"); value != want {
			t.Errorf("the client got %s: %q, want %q", name, value, want)
		}
	}
	if answer.Trailer.Get("X-Sum") != "7" {
		t.Errorf("trailers %v", answer.Trailer)
	}
}

func TestInterimAnswersPass(t *testing.T) {
	engine := startEngine(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a>")
		w.WriteHeader(http.StatusEarlyHints)
		io.WriteString(w, "{}")
	})
	s := newService(t, newRunners(t, engine), nil)
	answer, _ := s.post("/v1/embeddings", bodies["/v1/embeddings"])
	if answer.StatusCode != http.StatusOK || answer.Header.Get("X-Request-Id") == "" ||
		answer.Header.Get("Openai-Version") == "" {
		t.Errorf("got %d with %v", answer.StatusCode, answer.Header)
	}
}

// The client's going ends the request at the engine, and its place, within 100 ms.
func TestClientGoes(t *testing.T) {
	const limit = 100 * time.Millisecond
	gone := make(chan time.Time, 1)
	arrived := make(chan struct{}, 1)
	stream := false
	engine := startEngine(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if stream {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: {\"choices\":[{}]}\n\n")
			_ = http.NewResponseController(w).Flush()
		}
		arrived <- struct{}{}
		<-r.Context().Done()
		gone <- time.Now()
	})
	all := newRunners(t, engine)
	s := newService(t, all, nil)
	for _, stream = range []bool{false, true} {
		c := s.dial()
		body := bodies["/v1/completions"]
		c.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer key-a\r\n"+
			"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		<-arrived
		if stream {
			if _, err := c.in.ReadString('}'); err != nil {
				t.Fatal(err)
			}
		}
		left := time.Now()
		c.Close()
		if took := (<-gone).Sub(left); took > limit {
			t.Errorf("stream %v: the engine learns it after %v", stream, took)
		}
		if report := all.end(t); report.Outcome != plan.Evicted {
			t.Errorf("stream %v: reported %+v", stream, report)
		}
		if took := time.Since(left); took > limit {
			t.Errorf("stream %v: the place ended after %v", stream, took)
		}
	}
}

func TestClientGoesWhileItWaits(t *testing.T) {
	waiting, left := make(chan struct{}), make(chan error, 1)
	all := newRunners(t)
	all.decide(func(ctx context.Context, _ plan.Request) error {
		close(waiting)
		<-ctx.Done()
		left <- context.Cause(ctx)
		return ctx.Err()
	})
	s := newService(t, all, nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		answer, err := client.Do(s.request(ctx, "/v1/completions", bodies["/v1/completions"]))
		if err == nil {
			answer.Body.Close()
		}
		ended <- err
	}()
	<-waiting
	start := time.Now()
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the wait ended with %v", err)
	}
	if took := time.Since(start); took > 100*time.Millisecond {
		t.Errorf("the wait ended after %v", took)
	}
	if <-ended == nil {
		t.Error("a client that has gone got an answer")
	}
}

// An engine that dies within its answer ends the client's connection, so that nobody takes half an
// answer for a whole one.
func TestEngineDies(t *testing.T) {
	engine := startEngine(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"choices\":[{}]}\n\n")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	all := newRunners(t, engine)
	s := newService(t, all, nil)
	answer, err := client.Do(s.request(t.Context(), "/v1/completions",
		bodies["/v1/completions"]))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err == nil || string(text) !=
		"data: {\"choices\":[{}]}\n\n" {
		t.Errorf("got %q and %v", text, err)
	}
	if report := all.end(t); report.Outcome != plan.Died || report.OutputTokens != 1 {
		t.Errorf("reported %+v", report)
	}
}

// A runner that refuses, or is not there, is avoided for the next try.
func TestAnotherRunnerIsTried(t *testing.T) {
	shed := startEngine(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		http.Error(w, "busy", http.StatusTooManyRequests)
	})
	dead := startEngine(t, func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	})
	away := "http://127.0.0.1:1"
	good := startRunner(t)
	for name, test := range map[string]struct {
		servers  []string
		status   int
		outcomes []plan.Outcome
	}{
		"shed": {[]string{shed, good}, 200, []plan.Outcome{plan.Shed, plan.Succeeded}},
		"dead": {[]string{dead, good}, 200, []plan.Outcome{plan.Died, plan.Succeeded}},
		"unreachable": {[]string{away, good}, 200,
			[]plan.Outcome{plan.Unreachable, plan.Succeeded}},
		"all shed": {[]string{shed}, 429, []plan.Outcome{plan.Shed, plan.Shed, plan.Shed}},
		"all dead": {[]string{dead}, 502, []plan.Outcome{plan.Died, plan.Died, plan.Died}},
	} {
		t.Run(name, func(t *testing.T) {
			all := newRunners(t, test.servers...)
			s := newService(t, all, nil)
			answer, text := s.post("/v1/completions", bodies["/v1/completions"])
			if answer.StatusCode != test.status {
				t.Errorf("got %d %s", answer.StatusCode, text)
			}
			if test.status == 429 && (text != "busy\n" || answer.Header.Get("Retry-After") != "7") {
				t.Errorf("got %q with %v", text, answer.Header)
			}
			last := all.end(t)
			var got []plan.Outcome
			for _, r := range all.ended {
				got = append(got, r.Outcome)
			}
			if fmt.Sprint(got) != fmt.Sprint(test.outcomes) {
				t.Errorf("reported %v, want %v", got, test.outcomes)
			}
			if test.status == 429 && last.RetryAfter != 7*time.Second {
				t.Errorf("reported %+v", last)
			}
			if n := len(all.last().Avoid); n != len(test.outcomes)-1 {
				t.Errorf("avoids %v", all.last().Avoid)
			}
		})
	}
}

// If no other runner has a place, the client gets the answer of the one that refused.
func TestRefusalOfTheRunnerStands(t *testing.T) {
	shed := startEngine(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "busy", http.StatusServiceUnavailable)
	})
	all := newRunners(t, shed)
	all.decide(func(_ context.Context, r plan.Request) error {
		if len(r.Avoid) > 0 {
			return &Refused{plan.Refusal{Why: plan.TooMany}}
		}
		return nil
	})
	s := newService(t, all, nil)
	answer, text := s.post("/v1/completions", bodies["/v1/completions"])
	if answer.StatusCode != 503 || text != "busy\n" || answer.ContentLength != 5 {
		t.Errorf("got %d %q", answer.StatusCode, text)
	}
}

func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		why        plan.Reason
		body       string
		status     int
		code, kind string
	}{
		{plan.TooMany, "", 429, "rate_limit_exceeded", "rate_limit_error"},
		{plan.Waited, `"service_tier":"flex",`, 429, "resource_unavailable", "rate_limit_error"},
		{plan.NoRunner, "", 503, "no_runner", "server_error"},
		{plan.RunnersDown, "", 503, "runners_down", "server_error"},
	} {
		all := newRunners(t)
		all.decide(func(context.Context, plan.Request) error {
			return &Refused{plan.Refusal{Why: test.why, RetryAfter: 1500 * time.Millisecond}}
		})
		s := newService(t, all, &useCases{cases: map[string]UseCase{"/m": {}}})
		answer, text := s.post("/v1/completions", `{`+test.body+`"model":"m"}`)
		var refused struct {
			Error struct {
				Message, Type, Code string
				Param               *string
			}
		}
		if err := json.Unmarshal([]byte(text), &refused); err != nil {
			t.Fatal(err)
		}
		if e := refused.Error; answer.StatusCode != test.status || e.Code != test.code ||
			e.Type != test.kind || !strings.Contains(e.Message, string(test.why)) ||
			answer.Header.Get("Retry-After") != "2" ||
			answer.Header.Get("X-Tidefill-Wait-Reason") != string(test.why) {
			t.Errorf("%s: got %d %s with %v", test.why, answer.StatusCode, text, answer.Header)
		}
	}
}

// A model that does not exist looks like the use case of another tenant.
func TestUnknownModels(t *testing.T) {
	all := newRunners(t, startRunner(t))
	u := &useCases{cases: map[string]UseCase{
		"tenant-b/secret": {Targets: []Target{{"m", 1}}}}}
	s := newService(t, all, u)
	same := func(a, b string) {
		t.Helper()
		first, one := s.post("/v1/completions", `{"model":"`+a+`"}`)
		second, two := s.post("/v1/completions", `{"model":"`+b+`"}`)
		if first.StatusCode != 404 || second.StatusCode != 404 ||
			strings.ReplaceAll(one, a, b) != two {
			t.Errorf("got %d %s and %d %s", first.StatusCode, one, second.StatusCode, two)
		}
	}
	same("secret", "nobody")
	const want = `{"error":{"message":"The model 'nobody' does not exist",` +
		`"type":"invalid_request_error","param":null,"code":"model_not_found"}}` + "\n"
	if _, text := s.post("/v1/completions", `{"model":"nobody"}`); text != want {
		t.Errorf("got %s, want %s", text, want)
	}
	if answer, text := s.post("/v1/completions", `{"model":"secret","prompt":"a"}`, func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer key-b")
	}); answer.StatusCode != 200 {
		t.Errorf("its tenant got %d %s", answer.StatusCode, text)
	}
	// An implicit model whose runners are away for now exists.
	u.mu.Lock()
	u.implicit = true
	u.mu.Unlock()
	all.decide(func(context.Context, plan.Request) error {
		return &Refused{plan.Refusal{Why: plan.NoRunner}}
	})
	if answer, text := s.post("/v1/completions", `{"model":"nobody"}`); answer.StatusCode != 503 ||
		answer.Header.Get("Retry-After") == "" {
		t.Errorf("got %d %s", answer.StatusCode, text)
	}
}

func TestNothingLeaks(t *testing.T) {
	engine := startRunner(t)
	all := newRunners(t, engine)
	s := newService(t, all, nil, func(c *Config) { c.Memory = 1 << 20 })
	s.post("/v1/completions", bodies["/v1/completions"])
	s.proxy.Close()
	before := runtime.NumGoroutine()
	for path, body := range bodies {
		s.post(path, body)
		s.post(path, `{"model":`)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		if answer, err := client.Do(s.request(ctx, path, body)); err == nil {
			answer.Body.Close()
		}
		cancel()
	}
	all.end(t)
	s.awaitNothingHeld()
	await(t, func() bool {
		s.proxy.Close()
		return runtime.NumGoroutine() <= before
	}, func() string {
		return fmt.Sprintf("%d goroutines, before %d", runtime.NumGoroutine(), before)
	})
}

// With limits on slow clients, an upload of a large body may take longer than one of the API.
func TestLimitsOfTheServer(t *testing.T) {
	limits := httpserver.DefaultConfig()
	limits.BodyTimeout = 100 * time.Millisecond
	limits.Grace = time.Second
	all := newRunners(t, startRunner(t))
	s := newService(t, all, nil)
	s.serve(httpserver.Options{HalfClose: true}, limits)
	c := s.dial()
	body := bodies["/v1/completions"]
	c.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer key-a\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body[:20])
	time.Sleep(300 * time.Millisecond)
	c.send("%s", body[20:])
	if status := c.status(); status != http.StatusOK {
		t.Errorf("a slow body got %d", status)
	}
	c = s.dial() // never sends its body
	c.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer key-a\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body[:20])
	if status := c.status(); status != http.StatusRequestTimeout && status != 0 {
		t.Errorf("a body that stalls got %d", status)
	}
}

// A request whose key is revoked ends: while it waits with 401, within its answer by breaking off.
func TestRevokedKey(t *testing.T) {
	engine := startEngine(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{}]}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	waiting := make(chan struct{})
	all := newRunners(t, engine)
	s := newService(t, all, nil)
	stream, err := client.Do(s.request(t.Context(), "/v1/completions", bodies["/v1/completions"]))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	all.decide(func(ctx context.Context, _ plan.Request) error {
		close(waiting)
		<-ctx.Done()
		return ctx.Err()
	})
	go func() {
		<-waiting
		keys, err := api.ParseKeys("tenant-b=key-b")
		if err != nil {
			t.Error(err)
		}
		s.api.SetKeys(keys)
	}()
	answer, text := s.post("/v1/completions", bodies["/v1/completions"])
	if answer.StatusCode != http.StatusUnauthorized || !strings.Contains(text, "invalid_api_key") {
		t.Errorf("got %d %s", answer.StatusCode, text)
	}
	if rest, err := io.ReadAll(stream.Body); err == nil {
		t.Errorf("the stream ended well with %q", rest)
	}
	if report := all.end(t); report.Outcome != plan.Evicted {
		t.Errorf("reported %+v", report)
	}
}

// Clients that read slowly or go at any time, and engines that die, leave nothing behind, and no
// place ends twice.
func TestChurn(t *testing.T) {
	var turn atomic.Int64
	var calm atomic.Bool // no engine dies any more
	engine := startEngine(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		deadly := turn.Add(1)%7 == 0 && !calm.Load()
		for i := range 50 {
			if _, err := fmt.Fprintf(w, "data: {\"choices\":[{\"i\":%d}]}\n\n", i); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			if deadly && i == 20 {
				panic(http.ErrAbortHandler)
			}
		}
	})
	all := newRunners(t, engine, startRunner(t), "http://127.0.0.1:1")
	s := newService(t, all, nil)
	var clients sync.WaitGroup
	for i := range 200 {
		clients.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%20)*5*time.Millisecond+
				time.Millisecond)
			defer cancel()
			if i%5 == 0 {
				ctx = t.Context()
			}
			answer, err := client.Do(s.request(ctx, "/v1/completions", streaming("/v1/completions",
				bodies["/v1/completions"])))
			if err != nil {
				return
			}
			defer answer.Body.Close()
			for part := make([]byte, 200); ; {
				if _, err := answer.Body.Read(part); err != nil {
					return
				}
				if i%3 == 0 {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	clients.Wait()
	all.end(t)
	s.awaitNothingHeld()
	calm.Store(true)
	answer, text := s.post("/v1/embeddings", bodies["/v1/embeddings"])
	if answer.StatusCode >= http.StatusInternalServerError {
		t.Errorf("afterwards got %d %s", answer.StatusCode, text)
	}
}

// A runner that answers before it has the whole body does not disturb the rest of it.
func TestEarlyAnswerToALargeBody(t *testing.T) {
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyN(io.Discard, r.Body, 128<<10)
		w.WriteHeader(http.StatusBadRequest)
		_ = http.NewResponseController(w).Flush()
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	t.Cleanup(engine.Close)
	s := newService(t, newRunners(t, engine.URL), nil)
	for range 5 {
		body := `{"model":"m","prompt":"` + strings.Repeat("x", 4<<20) + `"}`
		if answer, _ := s.post("/v1/completions", body); answer.StatusCode != 400 {
			t.Errorf("status %d", answer.StatusCode)
		}
	}
}

// The salt of a tenant's cache can't be passed by a second header.
func TestCacheTagsAreOne(t *testing.T) {
	got := make(chan []string, 1)
	engine := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got <- r.Header.Values(cacheTagHeader)
	}))
	t.Cleanup(engine.Close)
	s := newService(t, newRunners(t, engine.URL), nil)
	s.post("/v1/completions", `{"model":"m","prompt":"x"}`, func(r *http.Request) {
		r.Header[cacheTagHeader] = []string{"", "another"}
	})
	if tags := <-got; len(tags) != 0 {
		t.Errorf("the runner got the tags %q", tags)
	}
}
