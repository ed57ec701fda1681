package openai

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// limitedMemory is a Memory of a fixed size.
type limitedMemory struct{ left atomic.Int64 }

func newLimitedMemory(bytes int64) *limitedMemory {
	p := &limitedMemory{}
	p.left.Store(bytes)
	return p
}

func (p *limitedMemory) Take(bytes int64) bool {
	if p.left.Add(-bytes) < 0 {
		p.left.Add(bytes)
		return false
	}
	return true
}

func (p *limitedMemory) Give(bytes int64) { p.left.Add(bytes) }

// memoryFiles holds temporary files in memory.
type memoryFiles struct {
	open, made atomic.Int64
	room       int64 // of each file; 0: as much as it takes
}

type memoryFile struct {
	mu    sync.Mutex
	bytes []byte
	of    *memoryFiles
}

func (s *memoryFiles) create(context.Context) (File, error) {
	s.open.Add(1)
	s.made.Add(1)
	return &memoryFile{of: s}, nil
}

func (f *memoryFile) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of.room > 0 && int64(len(f.bytes)+len(p)) > f.of.room {
		return 0, errors.New("the disk is full")
	}
	f.bytes = append(f.bytes, p...)
	return len(p), nil
}

func (f *memoryFile) ReadAt(p []byte, at int64) (int, error) {
	return bytes.NewReader(f.bytes).ReadAt(p, at)
}

func (f *memoryFile) Close() error {
	f.of.open.Add(-1)
	return nil
}

func embedding(size int) string {
	head := `{"choices":[],"data":[],"results":[],"text":"`
	tail := `","usage":{"prompt_tokens":9,"total_tokens":9}}`
	return head + strings.Repeat("\u00e9x", (size-len(head)-len(tail))/3) + tail
}

func TestLargeAnswersGoToAFile(t *testing.T) {
	bodies := map[string]string{
		"small":     embedding(3000),
		"middling":  embedding(300 << 10),
		"large":     embedding(2 << 20),
		"pretty":    "{\r\n \"choices\": [\n" + strings.Repeat("1,\n", 400_000) + "2]}\n",
		"no object": "{" + strings.Repeat("x", 2<<20),
		"no list":   `{"choices":"` + strings.Repeat("x", 2<<20) + `"}`,
		"cut JSON":  embedding(2 << 20)[:1<<20+5000],
		"too large": embedding(3 << 20),
		"error":     embedding(1 << 20),
	}
	for _, chunked := range []bool{false, true} {
		s, _ := start(t, func(w http.ResponseWriter, r *http.Request) {
			name, _ := io.ReadAll(r.Body)
			if !chunked {
				w.Header().Set("Content-Length", fmt.Sprint(len(bodies[string(name)])))
			}
			if string(name) == "error" {
				w.WriteHeader(500)
			}
			io.WriteString(w, bodies[string(name)])
		})
		for memory, bytes := range map[string]int64{"ample": 8 << 20, "short": 10 << 10} {
			for name, want := range bodies {
				t.Run(fmt.Sprintf("%s, memory %s, chunked %v", name, memory, chunked), func(
					t *testing.T) {
					files, lent := &memoryFiles{}, newLimitedMemory(bytes)
					c := newClient(t, Config{URL: s.URL, MaxAnswer: 5 << 19, Spool: files.create})
					scratch := Scratch{Memory: lent}
					a, err := c.Send(t.Context(), lineOf(name), &scratch)
					outcome := Classify(t.Context(), a, err)
					switch name {
					case "no object", "no list", "cut JSON":
						if outcome != plan.Garbled {
							t.Errorf("got %v (%v), want garbled", outcome, err)
						}
					case "too large":
						if outcome != plan.TooLong {
							t.Errorf("got %v (%v), want too long", outcome, err)
						}
					case "error":
						if outcome != plan.Failed || len(a.Body) < 10<<10 || len(
							a.Body) > maxError+100 || !strings.Contains(
							string(a.Body), "cut by tidefill") {
							t.Errorf("got %v (%v), %d bytes that end %q", outcome, err, len(
								a.Body), a.Body[max(0, len(a.Body)-100):])
						}
					default:
						if outcome != plan.Succeeded {
							t.Fatalf("got %v (%v)", outcome, err)
						}
						got := string(a.Body)
						if a.Large != nil {
							want = strings.NewReplacer("\r", " ", "\n", " ").Replace(want)
							text, err := io.ReadAll(io.NewSectionReader(
								a.Large.File, 0, a.Large.Size+1))
							if err != nil {
								t.Fatal(err)
							}
							got = string(text)
							if name != "pretty" && a.Usage.TotalTokens != 9 {
								t.Errorf("usage %+v", a.Usage)
							}
							a.Large.File.Close()
						}
						if got != want {
							t.Errorf("got %d bytes, want %d", len(got), len(want))
						}
						inFile := len(want) > largestAnswer || len(
							want) > smallAnswer && memory == "short"
						if (a.Large != nil) != inFile {
							t.Errorf("in a file: %v, want %v", a.Large != nil, inFile)
						}
					}
					if files.open.Load() != 0 {
						t.Errorf(
							"%d of %d files are left open", files.open.Load(), files.made.Load())
					}
					scratch.Trim(0)
					if left := lent.left.Load(); left != bytes {
						t.Errorf("%d bytes of memory are left of %d", left, bytes)
					}
				})
			}
		}
	}
}

func TestAnswerWithoutMemoryIsNoFaultOfTheRunner(t *testing.T) {
	s, _ := start(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, embedding(3<<20))
	})
	c := newClient(t, Config{URL: s.URL, MaxAnswer: 8 << 20,
		Spool: (&memoryFiles{room: 1 << 20}).create})
	a, err := c.Send(t.Context(), lineOf("x"), &Scratch{Memory: newLimitedMemory(0)})
	full, _ := errors.AsType[*NotKept](err)
	if got := Classify(t.Context(), a, err); got != plan.Evicted || full == nil || full.Whole ||
		full.Bytes < 1<<20 {
		t.Errorf("got %v (%v), want a line that comes back, with the size that was read", got, err)
	}
}

func TestMaxAnswerOfAnEndpoint(t *testing.T) {
	s, _ := start(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, embedding(5000))
	})
	c := newClient(t, Config{URL: s.URL, MaxAnswer: 1000, MaxAnswerOf: map[string]int64{
		"/v1/embeddings": 6000}})
	for path, want := range map[string]plan.Outcome{"/v1/embeddings": plan.Succeeded,
		"/v1/rerank": plan.TooLong} {
		line := lineOf("x")
		line.Path = path
		a, err := c.Send(t.Context(), line, &Scratch{})
		if got := Classify(t.Context(), a, err); got != want {
			t.Errorf("%s: got %v (%v), want %v", path, got, err, want)
		}
	}
}

func TestStreamsThatTakeTooMuchMemoryFail(t *testing.T) {
	choices := func(n int) string { // of a chunk in which every choice calls every tool
		var calls, all []string
		for i := range n {
			calls = append(calls, fmt.Sprintf(`{"index":%d}`, i))
		}
		for i := range n {
			all = append(all, fmt.Sprintf(`{"index":%d,"delta":{"tool_calls":[%s]}}`, i,
				strings.Join(calls, ",")))
		}
		return strings.Join(all, ",")
	}
	for name, c := range map[string]struct {
		memory int64
		stream string
		want   error
	}{
		"text": {8 << 20, strings.Repeat(
			sseChunk(`{"index":0,"delta":{"content":"`+strings.Repeat("a", 10_000)+`"}}`), 200),
			ErrTooLong},
		"structure": {8 << 20, sseChunk(choices(150)), ErrTooLong},
		"no memory": {0, strings.Repeat(sseChunk(`{"index":0,"delta":{"content":"`+strings.Repeat(
			"a", 1000)+`"}}`), 20), ErrTooLong},
		"one event": {8 << 20, "data: " + strings.Repeat("a", 5<<20), ErrTooLong},
		"small ones": {
			0, sse(chatChunk(`{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}`),
				usageChunk), nil},
		"usage in every chunk": {0, strings.Repeat("data: "+strings.Replace(
			chatChunk(`{"index":0,"delta":{"content":"a"}}`), `"m"`,
			`"m","usage":{"prompt_tokens":1}`, 1)+"\n\n", 1000) +
			sse(chatChunk(`{"index":0,"delta":{},"finish_reason":"stop"}`)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			lent := newLimitedMemory(c.memory)
			cl := &Client{cfg: Config{MaxAnswer: 64 << 20}}
			response := &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(
				c.stream))}
			scratch := Scratch{Memory: lent}
			err := cl.readStream(Request{Path: path, Watch: noWatch}, response, &scratch,
				new(Answer))
			if c.want == nil && err != nil || c.want != nil && (!errors.Is(err, c.want) ||
				!errors.Is(err, ErrNotAssembled)) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			scratch.Trim(0)
			if left := lent.left.Load(); left != c.memory {
				t.Errorf("%d bytes of memory are left of %d", left, c.memory)
			}
		})
	}
}

func sseChunk(choice string) string { return "data: " + chatChunk(choice) + "\n\n" }

// An answer is judged by what its endpoint answers, and not by its status alone.
func TestAnswersOfAnotherShape(t *testing.T) {
	good := map[string][]string{
		"/v1/chat/completions": {`{"id":"x","choices":[{"index":0}],"usage":null}`, `{"choices":[]}`},
		"/v1/completions":      {`{"choices":[{"text":""}]}`},
		"/v1/responses":        {`{"object":"response","output":[]}`},
		"/v1/embeddings":       {`{"data":[{"embedding":[1]}]}`},
		"/v1/moderations":      {`{"results":[{}]}`},
		"/v1/rerank":           {`{"results":[]}`, `{"data":[]}`},
		"/v1/score":            {`{"data":[]}`, `{"scores":[[0.5]]}`},
	}
	bad := []string{"", " ", "null", "[]", "<!doctype html><title>Sign in</title>", `{"status":"ok"}`,
		`{}`, `{"choices":null}`, `{"choices":{},"data":0,"output":"","results":true}`,
		`{"error":{"message":"overloaded"}}`, `{"nested":{"choices":[],"data":[]}}`,
		`{"choices":[]`, `{"choices":[]}}`}
	var body string
	s, _ := start(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, body) })
	c := newClient(t, Config{URL: s.URL, MaxAnswer: 1000})
	check := func(path string, want plan.Outcome) {
		line := lineOf("x")
		line.Path = path
		a, err := c.Send(t.Context(), line, &Scratch{})
		if got := Classify(t.Context(), a, err); got != want {
			t.Errorf("%s: %q is %v (%v), want %v", path, body, got, err, want)
		}
	}
	for path, bodies := range good {
		for _, body = range bodies {
			check(path, plan.Succeeded)
		}
		for _, body = range bad {
			check(path, plan.Garbled)
		}
	}
}

// A 404 that is about the model or the route is the server's fault. One that is about what a line
// names is the line's.
func TestUnknownModelsAndRoutes(t *testing.T) {
	for body, want := range map[string]bool{
		`{"error":{"message":"x","code":"model_not_found"}}`:                                true,
		`{"object":"error","message":"The model ` + "`m`" + ` does not exist.","code":404}`: true,
		`{"error":{"message":"x","type":"NotFoundError","param":"model","code":404}}`:       true,
		`{"error":{"message":"model \"m\" not found, try pulling it first","code":null}}`:   true,
		`{"error":"model 'm' not found"}`:                                                   true,
		`{"error":{"message":"Not Found","type":"Not Found","code":404}}`:                   true,
		`{"message":"no Route matched with those values"}`:                                  true,
		`{"message":"Route POST:/v1/x not found","error":"Not Found","statusCode":404}`:     true,
		`{"error":{"message":"Invalid URL (POST /v1/x)","code":null}}`:                      true,
		`{"timestamp":1,"status":404,"error":"Not Found","path":"/v1/x"}`:                   true,
		`{"error":{"message":"Response with id 'resp_model' not found.","code":404}}`:       false,
		`{"error":{"message":"No such File object: f","param":"id","code":null}}`:           false,
		`{"error":{"message":"Image URL not found"}}`:                                       false,
		`{"error":{"message":"No endpoints found that support image input","code":404}}`:    false,
		`{"error":{"message":7,"code":[]}}`:                                                 false,
		`{"error":{}}`:                                                                      false,
		"404 page not found":                                                                false,
	} {
		if got := Unknown(Answer{Status: 404, Body: []byte(body)}); got != want {
			t.Errorf("404 %s: %v, want %v", body, got, want)
		}
		if Unknown(Answer{Status: 400, Body: []byte(body)}) {
			t.Errorf("400 %s is not the line's fault", body)
		}
	}
	ours := Answer{Status: 403, Body: []byte(`{"error":{"code":"model_not_found"}}`)}
	if !Unknown(ours) || Unknown(Answer{Status: 403, Body: []byte(`{"error":{"param":"model"}}`)}) {
		t.Error("403 is about the model with the code model_not_found only")
	}
}

// Who is at fault shows in the status and, where that is no use, in the body.
func TestErrorsOfOtherServers(t *testing.T) {
	const api, page = `{"error":{"message":"no"}}`, "404 page not found"
	for _, test := range []struct {
		status  int
		body    string
		want    plan.Outcome
		foreign bool
	}{
		{400, api, plan.Refused, false}, {400, page, plan.Refused, false},
		{413, page, plan.Refused, false}, {422, `{"detail":[]}`, plan.Refused, false},
		{404, api, plan.Refused, false}, {404, `{"object":"error","message":"no"}`, plan.Refused,
			false},
		{404, page, plan.Denied, true}, {404, `{"detail":"Not Found"}`, plan.Denied, true},
		{405, "", plan.Refused, true},
		{401, api, plan.Denied, false}, {403, page, plan.Denied, true},
		{407, "", plan.Denied, true}, {302, "", plan.Denied, true}, {511, page, plan.Denied, true},
		{500, page, plan.Failed, true}, {503, page, plan.Shed, true}, {502, page, plan.Died, true},
	} {
		s, _ := start(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(test.status)
			io.WriteString(w, test.body)
		})
		c := newClient(t, Config{URL: s.URL, MaxAnswer: 1000})
		a, err := c.Send(t.Context(), lineOf("x"), &Scratch{})
		if got := Classify(t.Context(), a, err); got != test.want || IsForeign(a) != test.foreign {
			t.Errorf("%d %q: %v, foreign %v; want %v, %v", test.status, test.body, got,
				IsForeign(a), test.want, test.foreign)
		}
	}
}
