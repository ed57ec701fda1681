package inline

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// recorder is an engine that notes the bodies that it gets completely.
type recorder struct {
	url    string
	bodies chan string
}

func newRecorder(t testing.TB) *recorder {
	r := &recorder{bodies: make(chan string, 16)}
	r.url = startEngine(t, func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		r.bodies <- string(body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"model":"t"}`)
	})
	return r
}

// none fails the test if a body has arrived.
func (r *recorder) none(t testing.TB, name string) {
	t.Helper()
	select {
	case body := <-r.bodies:
		t.Errorf("%s: the engine got %.200q", name, body)
	default:
	}
}

func TestHostileBodies(t *testing.T) {
	deep := func(n int) string {
		return `{"model":"m","x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	engine := newRecorder(t)
	s := newService(t, newRunners(t, engine.url), nil)
	for name, test := range map[string]struct{ body, reason string }{
		"empty":          {"", "invalid_json"},
		"no object":      {`["model"]`, "invalid_json"},
		"cut":            {`{"model":"m"`, "invalid_json"},
		"trailing":       {`{"model":"m"} {}`, "invalid_json"},
		"two objects":    {`{"model":"m"}{"model":"n"}`, "invalid_json"},
		"mark":           {"\xEF\xBB\xBF" + `{"model":"m"}`, "invalid_json"},
		"control":        {"{\"model\":\"m\x01\"}", "invalid_json"},
		"nan":            {`{"model":"m","x":NaN}`, "invalid_json"},
		"comment":        {`{"model":"m"/**/}`, "invalid_json"},
		"not UTF-8":      {"{\"model\":\"m\",\"x\":\"\xff\"}", "invalid_utf8"},
		"cut rune":       {"{\"model\":\"m\",\"x\":\"\xe2\x82\"}", "invalid_utf8"},
		"surrogate":      {"{\"model\":\"m\",\"x\":\"\xed\xa0\x80\"}", "invalid_utf8"},
		"deep":           {deep(512), "invalid_json"},
		"no model":       {`{"messages":[]}`, "no_model"},
		"nested model":   {`{"x":{"model":"m"}}`, "no_model"},
		"empty model":    {`{"model":""}`, "no_model"},
		"null":           {`{"model":null}`, "member"},
		"number":         {`{"model":1}`, "member"},
		"object":         {`{"model":{"a":1}}`, "member"},
		"long model":     {`{"model":"` + strings.Repeat("m", 2000) + `"}`, "member"},
		"twice":          {`{"model":"m","model":"n"}`, "repeated_member"},
		"twice, escaped": {`{"model":"m","\u006dodel":"n"}`, "repeated_member"},
		"capitals":       {`{"model":"m","Model":"n"}`, "repeated_member"},
		"folded":         {`{"model":"m","meſsages":[]}`, "repeated_member"},
		"tier twice": {`{"service_tier":"flex","model":"m","service_tier":"a"}`,
			"repeated_member"},
		"tier":              {`{"model":"m","service_tier":"gold"}`, "member"},
		"tier of a number":  {`{"model":"m","service_tier":1}`, "member"},
		"salt of an object": {`{"model":"m","cache_salt":{}}`, "member"},
	} {
		answer, text := s.post("/v1/chat/completions", test.body)
		var refused struct {
			Error *struct{ Message, Type string }
		}
		if err := json.Unmarshal([]byte(text), &refused); err != nil || refused.Error == nil ||
			answer.StatusCode != http.StatusBadRequest ||
			refused.Error.Type != "invalid_request_error" || refused.Error.Message == "" {
			t.Errorf("%s: got %d %s", name, answer.StatusCode, text)
		}
		if n := s.counted("tidefill_inline_refused_total", test.reason); n == 0 {
			t.Errorf("%s: not counted as %s", name, test.reason)
		}
		engine.none(t, name)
	}
	for _, body := range []string{deep(511), `{"model":"m","service_tier":null}`,
		`{"model":"m","service_tier":"auto","max_tokens":null}`, " {\"model\":\"m\"}\r\n\t"} {
		if answer, text := s.post("/v1/chat/completions", body); answer.StatusCode != 200 {
			t.Errorf("%.80s: got %d %s", body, answer.StatusCode, text)
		} else if got := <-engine.bodies; got != body {
			t.Errorf("the engine got %.80q, want %.80q", got, body)
		}
	}
}

// counted returns the value of a counter with a label of some value.
func (s *service) counted(name, label string) (n float64) {
	s.t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == name && l.GetValue() == label {
					n += m.GetCounter().GetValue()
				}
			}
		}
	}
	return n
}

func TestHeadersThatAreRefused(t *testing.T) {
	engine := newRecorder(t)
	s := newService(t, newRunners(t, engine.url), nil, func(c *Config) { c.MaxBodyBytes = 1000 })
	for name, test := range map[string]struct {
		status int
		edit   func(*http.Request)
	}{
		"gzip": {415, func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }},
		"multipart": {415, func(r *http.Request) {
			r.Header.Set("Content-Type", "multipart/form-data; boundary=a")
		}},
		"no type": {415, func(r *http.Request) { r.Header.Del("Content-Type") }},
		"websocket": {400, func(r *http.Request) {
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", "websocket")
		}},
		"no key": {401, func(r *http.Request) { r.Header.Del("Authorization") }},
		"get":    {405, func(r *http.Request) { r.Method = http.MethodGet }},
		"large":  {413, func(r *http.Request) { setBody(r, strings.Repeat(" ", 1001)) }},
		"large, of unknown length": {413, func(r *http.Request) {
			setBody(r, strings.Repeat(" ", 1001))
			r.ContentLength = -1
		}},
		"deadline": {400, func(r *http.Request) {
			setBody(r, `{"model":"m","service_tier":"flex"}`)
			r.Header.Set(deadlineHeader, "tomorrow")
		}},
		"preflight": {405, func(r *http.Request) {
			r.Method = http.MethodOptions
			r.Header.Set("Access-Control-Request-Method", "POST")
		}},
		"another site": {403, func(r *http.Request) {
			r.Header.Set("Origin", "https://evil.example")
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		}},
	} {
		answer, text := s.post("/v1/chat/completions", `{"model":"m"}`, test.edit)
		if answer.StatusCode != test.status {
			t.Errorf("%s: got %d %s", name, answer.StatusCode, text)
		}
		for h := range answer.Header {
			if strings.HasPrefix(h, "Access-Control-") {
				t.Errorf("%s: got the header %s", name, h)
			}
		}
		engine.none(t, name)
	}
	if answer, _ := s.post("/v1/chat/completions", `{"model":"m"}`, func(r *http.Request) {
		r.Header.Set("Upgrade", "h2c")
		r.Header.Set("Content-Encoding", "identity")
		setBody(r, `{"model":"m"}`+strings.Repeat(" ", 1000-13))
	}); answer.StatusCode != http.StatusOK {
		t.Errorf("got %d", answer.StatusCode)
	}
}

func setBody(r *http.Request, body string) {
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
}

// A body whose parts do not agree on its length is refused, or passed on as what it was read as:
// the engine gets one request, and nothing that hides in its body.
func TestSmuggling(t *testing.T) {
	engine := newRecorder(t)
	s := newService(t, newRunners(t, engine.url), nil)
	const body = `{"model":"m"}`
	const hidden = "POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 13\r\n\r\n" + body
	for name, test := range map[string]struct {
		header, body string
		statuses     []int // 0: closed
		got          []string
	}{
		"two lengths": {"Content-Length: 13\r\nContent-Length: 90\r\n", body, []int{400}, nil},
		"a list":      {"Content-Length: 13, 13\r\n", body, []int{400}, nil},
		"sign":        {"Content-Length: +13\r\n", body, []int{400}, nil},
		"two codings": {"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
			"0\r\n\r\n", []int{501, 400}, nil},
		"coding":    {"Transfer-Encoding: xchunked\r\n", "0\r\n\r\n", []int{501}, nil},
		"space":     {"Content-Length : 13\r\n", body, []int{400}, nil},
		"folded":    {"X: a\r\n Content-Length: 13\r\n", "", []int{400}, nil},
		"bad chunk": {"Transfer-Encoding: chunked\r\n", "-1\r\n" + body, []int{400}, nil},
		"chunk suffix": {"Transfer-Encoding: chunked\r\n", "dx\r\n" + body + "\r\n0\r\n\r\n",
			[]int{400}, nil},
		"short chunk": {"Transfer-Encoding: chunked\r\n", "5\r\n" + body + "\r\n0\r\n\r\n",
			[]int{400}, nil},
		// What follows the chunks is the next request of the connection, which has no key.
		"chunked with length": {"Content-Length: 200\r\nTransfer-Encoding: chunked\r\n",
			"d\r\n" + body + "\r\n0\r\n\r\n" + hidden, []int{200, 401}, []string{body}},
		"body with a request": {"Content-Length: 13\r\n", body + hidden, []int{200, 401},
			[]string{body}},
	} {
		c := s.dial()
		c.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer key-a\r\n"+
			"Content-Type: application/json\r\n%s\r\n%s", test.header, test.body)
		for _, want := range test.statuses {
			if got := c.status(); got != want && got != 0 {
				t.Errorf("%s: got %d, want %d", name, got, want)
			}
		}
		for _, want := range test.got {
			if got := <-engine.bodies; got != want {
				t.Errorf("%s: the engine got %q, want %q", name, got, want)
			}
		}
		engine.none(t, name)
		c.Close()
	}
	c := s.dial()
	c.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer key-a\r\nX: ")
	for range 64 { // 1 MiB, which is 64 times as much as a header may have
		if _, err := io.WriteString(c, strings.Repeat("a", 16<<10)); err != nil {
			break
		}
	}
	if status := c.status(); status != http.StatusRequestHeaderFieldsTooLarge && status != 0 {
		t.Errorf("an endless header got %d", status)
	}
}

// cases has the use case u, whose requests go to the model t.
func cases() *useCases {
	return &useCases{implicit: true, cases: map[string]UseCase{"/u": {
		Targets: []Target{{"t\"é", 1}}}}}
}

func TestOnlyTheModelChanges(t *testing.T) {
	engine := newRecorder(t)
	s := newService(t, newRunners(t, engine.url), cases())
	for body, want := range map[string]string{
		`{"model":"u"}`:                             `{"model":"t\"é"}`,
		"{\"a\":[2.50],\n\"model\" :\t\"u\"}":       "{\"a\":[2.50],\n\"model\" :\t\"t\\\"é\"}",
		`{"m\u006fdel":"\u0075","x":{"model":"u"}}`: `{"m\u006fdel":"t\"é","x":{"model":"u"}}`,
		`{"model":"m","user":"u"}`:                  `{"model":"m","user":"u"}`,
	} {
		for _, length := range []int64{int64(len(body)), -1} {
			answer, text := s.post("/v1/completions", body, func(r *http.Request) {
				r.ContentLength = length
			})
			if answer.StatusCode != http.StatusOK {
				t.Fatalf("%s: got %d %s", body, answer.StatusCode, text)
			}
			if got := <-engine.bodies; got != want {
				t.Errorf("%s: the engine got %s, want %s", body, got, want)
			}
		}
	}
}

func TestCacheSalt(t *testing.T) {
	engine := newRecorder(t)
	s := newService(t, newRunners(t, engine.url), cases(), func(c *Config) { c.CacheSalt = true })
	a, b := saltOf("tenant-a").value, saltOf("tenant-b").value
	large := strings.Repeat("x", 3*holdBytes)
	own, ours := `"cache_salt":"`+a+`"`, `"cache_salt":"`+a+`.mine"`
	for body, want := range map[string]string{
		`{"model":"m"}`:                          `{"model":"m",` + own + `}`,
		`{"model":"u" }`:                         `{"model":"t\"é" ,` + own + `}`,
		`{"cache_salt":"mine","model":"u"}`:      `{` + ours + `,"model":"t\"é"}`,
		`{"model":"u","cache_salt":null}`:        `{"model":"t\"é",` + own + `}`,
		`{"model":"m","cache_salt":"` + b + `"}`: `{"model":"m","cache_salt":"` + a + `.` + b + `"}`,
		`{"model":"m","p":"` + large + `"}`:      `{"model":"m","p":"` + large + `",` + own + `}`,
		`{"model":"m","q":"` + large + `","r":1}`: `{"model":"m","q":"` + large +
			`","r":1,` + own + `}`,
		`{"model":"u","p":"` + large + `","cache_salt":"mine"}`: `{"model":"t\"é","p":"` + large +
			`",` + ours + `}`,
	} {
		answer, text := s.post("/v1/chat/completions", body)
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("%.60s: got %d %s", body, answer.StatusCode, text)
		}
		if got := <-engine.bodies; got != want {
			t.Errorf("%.60s: the engine got %.100s, want %.100s", body, got, want)
		}
	}
	if s.post("/v1/embeddings", `{"model":"m"}`); <-engine.bodies != `{"model":"m"}` {
		t.Error("a request of embeddings has a salt")
	}
	for _, body := range []string{`{"model":"m","cache_salt":"a","cache_salt":"b"}`,
		`{"model":"m","p":"` + large + `","cache_salt":null}`} {
		if answer, text := s.post("/v1/chat/completions", body); answer.StatusCode != 400 {
			t.Errorf("%.60s: got %d %s", body, answer.StatusCode, text)
		}
		engine.none(t, body[:40])
	}
}

// slowly is a body that waits in its middle.
type slowly struct {
	first, rest io.Reader
	more        chan struct{}
}

func (s *slowly) Read(p []byte) (int, error) {
	if n, err := s.first.Read(p); err == nil {
		return n, nil
	}
	<-s.more
	return s.rest.Read(p)
}

// A large body streams through once its model is known.
func TestLargeBodyStreams(t *testing.T) {
	begun, got := make(chan struct{}), make(chan []byte, 1)
	engine := startEngine(t, func(w http.ResponseWriter, r *http.Request) {
		first := make([]byte, holdBytes)
		_, err := io.ReadFull(r.Body, first)
		close(begun)
		rest, other := io.ReadAll(r.Body)
		if err != nil || other != nil {
			t.Errorf("read: %v %v", err, other)
		}
		got <- append(first, rest...)
	})
	s := newService(t, newRunners(t, engine), cases())
	head := `{"model":"u","p":"` + strings.Repeat("é", holdBytes)
	tail := strings.Repeat("y", 2<<20) + `"}`
	body := &slowly{strings.NewReader(head), strings.NewReader(tail), make(chan struct{})}
	r := s.request(t.Context(), "/v1/chat/completions", "")
	r.Body, r.ContentLength = io.NopCloser(body), int64(len(head)+len(tail))
	go func() {
		<-begun // the engine has the beginning, before the client has sent the end
		if held := s.proxy.memory.used.Load(); held > 2*holdBytes {
			t.Errorf("%d bytes are held", held)
		}
		close(body.more)
	}()
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	want := strings.Replace(head, `"u"`, `"t\"é"`, 1) + tail
	if text := <-got; string(text) != want {
		t.Errorf("the engine got %d bytes, want %d", len(text), len(want))
	}
}

// largeFaults are bodies with a fault in the part that streams.
var largeFaults = func() map[string]string {
	faults := map[string]string{
		"twice":     `","model":"n"}`,
		"tier":      `","service_tier":"flex"}`,
		"trailing":  `"} x`,
		"cut":       `"`,
		"not UTF-8": "\xff\"}",
		"no JSON":   `"]`,
	}
	for name, tail := range faults {
		faults[name] = `{"model":"m","p":"` + strings.Repeat("x", 3*holdBytes) + tail
	}
	return faults
}()

// A fault in the part of a body that streams ends the request before the engine has all of it.
func TestFaultsOfLargeBodies(t *testing.T) {
	engine := newRecorder(t)
	all := newRunners(t, engine.url)
	s := newService(t, all, nil)
	large := strings.Repeat("x", 3*holdBytes)
	for name, body := range largeFaults {
		for _, length := range []int64{int64(len(body)), -1} {
			answer, text := s.post("/v1/chat/completions", body, func(r *http.Request) {
				r.ContentLength = length
			})
			if answer.StatusCode != http.StatusBadRequest {
				t.Errorf("%s: got %d %s", name, answer.StatusCode, text)
			}
			if report := all.end(t); report.Outcome != plan.Evicted {
				t.Errorf("%s: reported %+v", name, report)
			}
			engine.none(t, name)
		}
	}
	// All of it is held if the model comes last, or only a little follows it.
	for _, body := range []string{`{"p":"` + large + `","model":"m"}`,
		`{"p":"` + large + `","model":"m","service_tier":"flex"}`} {
		if answer, text := s.post("/v1/completions", body); answer.StatusCode != 200 {
			t.Errorf("got %d %s", answer.StatusCode, text)
		}
		if got := <-engine.bodies; got != body {
			t.Errorf("the engine got %d bytes, want %d", len(got), len(body))
		}
	}
	// A client that breaks off within its body.
	c := s.dial()
	c.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer key-a\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n{\"model\":\"m\",\"p\":\"%s",
		2*len(large), large)
	await(t, func() bool {
		all.mu.Lock()
		defer all.mu.Unlock()
		return all.open > 0
	}, func() string { return "the request gets no place" })
	c.Close()
	if report := all.end(t); report.Outcome != plan.Evicted {
		t.Errorf("reported %+v", report)
	}
	engine.none(t, "a client that broke off")
}

func TestMemoryIsLimited(t *testing.T) {
	waiting, leave := make(chan struct{}), make(chan struct{})
	all := newRunners(t, startRunner(t))
	all.decide(func(context.Context, plan.Request) error {
		waiting <- struct{}{}
		<-leave
		return nil
	})
	s := newService(t, all, nil, func(c *Config) { c.Memory = holdBytes })
	body := `{"model":"m","prompt":"` + strings.Repeat("x", 200<<10) + `"}`
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.post("/v1/completions", body)
	}()
	<-waiting
	if answer, text := s.post("/v1/completions", body); answer.StatusCode != 503 ||
		answer.Header.Get("Retry-After") != "1" {
		t.Errorf("got %d %s", answer.StatusCode, text)
	}
	close(leave)
	<-done
	s.awaitNothingHeld()
}

// FuzzBody compares what a runner would get of a body with what encoding/json understands of it.
func FuzzBody(f *testing.F) {
	for _, body := range bodies {
		f.Add([]byte(body), uint16(3))
	}
	for _, body := range []string{`{"model":"m","model":"n"}`, `{"mod\u0065l":"\u006d\n"}`,
		`{"cache_salt":"x","model":"m"}`, `{"model":"m","cache_salt":null,"a":"é"}`, `{`, `[]`,
		`{"a":{"model":1},"model":"m","Model":2}`, "{\"model\":\"\xe2\x82\"}"} {
		f.Add([]byte(body), uint16(1))
	}
	model, tenantSalt := []byte(`"target"`), saltOf("tenant")
	f.Fuzz(func(t *testing.T, body []byte, size uint16) {
		held, fault := readPieces(body, int(size%512)+1)
		valid := json.Valid(body) && utf8.Valid(body) && len(bytes.TrimSpace(body)) > 0 &&
			bytes.TrimLeft(body, " \t\r\n")[0] == '{'
		if fault != nil {
			if fault.reason == "invalid_json" && valid && !tooDeep(body) ||
				fault.reason == "invalid_utf8" && utf8.Valid(body) {
				t.Fatalf("%q is refused: %v", body, fault)
			}
			return
		}
		var before, after map[string]json.RawMessage
		if err := json.Unmarshal(body, &before); err != nil || !valid {
			t.Fatalf("%q passes: %v", body, err)
		}
		if text(before["model"]) != held.scan.model {
			t.Fatalf("%q: model %q", body, held.scan.model)
		}
		out, n := held.out(model, tenantSalt)
		sent, err := io.ReadAll(out)
		if err != nil || int64(len(sent)) != n {
			t.Fatalf("%q: %d bytes of %d are sent, %v", body, len(sent), n, err)
		}
		if err := json.Unmarshal(sent, &after); err != nil {
			t.Fatalf("%q became %q: %v", body, sent, err)
		}
		if string(after["model"]) != `"target"` ||
			!strings.HasPrefix(text(after["cache_salt"]), tenantSalt.value) {
			t.Fatalf("%q became %q", body, sent)
		}
		delete(before, "cache_salt")
		delete(after, "cache_salt")
		before["model"] = model
		if fmt.Sprint(before) != fmt.Sprint(after) {
			t.Fatalf("%q became %q", body, sent)
		}
		same, _ := held.out(nil, nil)
		if sent, err = io.ReadAll(same); err != nil || !bytes.Equal(sent, body) {
			t.Fatalf("%q became %q without a change", body, sent)
		}
	})
}

// tooDeep reports whether a body may nest deeper than is allowed.
func tooDeep(body []byte) bool {
	return bytes.Count(body, []byte("[")) >= maxDepth-1 ||
		bytes.Count(body, []byte("{")) >= maxDepth-1
}

// readPieces reads a body in pieces of some size.
func readPieces(text []byte, size int) (*body, *failure) {
	m := &memory{}
	m.limit.Store(1 << 30)
	r, err := http.NewRequest(http.MethodPost, "/", &pieces{bytes.NewReader(text), size})
	if err != nil {
		panic(err)
	}
	r.ContentLength = -1
	return readBody(nil, r, 1<<20, share{m, "t"})
}

type pieces struct {
	*bytes.Reader
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	return p.Reader.Read(b[:min(len(b), p.size)])
}
