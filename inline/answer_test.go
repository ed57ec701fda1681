package inline

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidefill/tidefill/internal/httpserver"
	"github.com/tidefill/tidefill/internal/httpserver/tlstest"
)

// answers are answers of engines with the tokens that their events bring.
var answers = []struct {
	responses, stream bool
	text              string
	tokens            int
	input, output     int64
}{
	{false, true, chatStream, 2, 5, 2},
	{true, true, responseStream, 1, 5, 1},
	{false, false, `{"model": "t", "usage":{"total_tokens":8,"prompt_tokens":8},` +
		`"x":{"model":"t"}}`, 0, 8, 0},
	{true, false, `{"object":"response","model":"t","usage":null,"output":[]}`, 0, 0, 0},
	{false, false, `not JSON, "model":"t"`, 0, 0, 0},
}

const (
	chatStream = `data: {"id":"1","model":"t","choices":[{"delta":{"role":"assistant",` +
		`"content":""}}]}` + "\n\n" +
		`data: {"choices":[{"delta":{"content":"a"}}],"model":"t"}` + "\n\n: ping\n\n" +
		`data: {"choices":[{"delta":{"content":"\"usage\":{\"prompt_tokens\":9}"}}]}` +
		"\r\n\r\n" +
		`data: {"choices":[],"model":"t","usage": {"prompt_tokens":5,"completion_tokens":2,` +
		`"prompt_tokens_details":{"cached_tokens":4}}}` + "\n\ndata: [DONE]\n\n"
	responseStream = "event: response.created\n" +
		`data: {"type":"response.created","response":{"id":"1","model":"t"}}` + "\n\n" +
		"event: response.output_text.delta\n" +
		`data: {"type":"response.output_text.delta","delta":"model"}` + "\n\n" +
		`data: {"type":"response.completed","response":{"model":"t","usage":` +
		`{"input_tokens":5,"output_tokens":1}}}` + "\n\n"
)

// want is an answer with the model that the user asked for.
func want(responses bool, text string) string {
	text = strings.Replace(text, `{"model": "t"`, `{"model": "u"`, 1)
	for _, piece := range []string{`"model":"t","choices"`, `],"model":"t"`, `"id":"1","model":"t"`,
		`{"object":"response","model":"t"`} {
		text = strings.ReplaceAll(text, piece, strings.Replace(piece, `"t"`, `"u"`, 1))
	}
	if responses {
		text = strings.ReplaceAll(text, `"response":{"model":"t"`, `"response":{"model":"u"`)
	}
	return text
}

func TestAnswersInPieces(t *testing.T) {
	for i, a := range answers {
		for size := 1; size < len(a.text)+2; size = size*3/2 + 1 {
			e, u := &events{responses: a.responses}, &usageScan{}
			r := newRewriter([]byte(`"u"`), a.responses, a.stream)
			tokens, got := 0, []byte{}
			for rest := []byte(a.text); len(rest) > 0; {
				piece := rest[:min(size, len(rest))]
				rest = rest[len(piece):]
				u.read(piece)
				if a.stream {
					tokens += e.count(piece)
				}
				if r.put(piece) {
					buffer := make([]byte, 7)
					for n := r.take(buffer); n > 0; n = r.take(buffer) {
						got = append(got, buffer[:n]...)
					}
				} else {
					got = append(got, piece...)
				}
			}
			usage, _ := u.usage()
			if tokens != a.tokens || usage.InputTokens != a.input ||
				usage.OutputTokens != a.output {
				t.Errorf("answer %d in pieces of %d: %d tokens, usage %+v", i, size, tokens, usage)
			}
			if want := want(a.responses, a.text); string(got) != want {
				t.Fatalf("answer %d in pieces of %d: got\n%s\nwant\n%s", i, size, got, want)
			}
		}
	}
}

func TestModelOfAnswers(t *testing.T) {
	engine := startEngine(t, func(w http.ResponseWriter, r *http.Request) {
		var a = answers[0]
		for _, other := range answers {
			if other.responses == (r.URL.Path == responsesURL) &&
				other.stream == strings.Contains(r.URL.RawQuery, "stream") {
				a = other
				break
			}
		}
		if w.Header().Set("Content-Type", "application/json"); a.stream {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		for i := 0; i < len(a.text); i += 50 {
			_, _ = io.WriteString(w, a.text[i:min(i+50, len(a.text))])
			_ = http.NewResponseController(w).Flush()
		}
	})
	u := &useCases{cases: map[string]UseCase{"/u": {Targets: []Target{{"t", 1}}}, "/t": {}}}
	on := newService(t, newRunners(t, engine), u)
	off := newService(t, newRunners(t, engine), u, func(c *Config) { c.RewriteModel = false })
	for _, path := range []string{"/v1/completions", "/v1/completions?stream", "/v1/responses",
		"/v1/responses?stream"} {
		_, same := on.post(path, `{"model":"t"}`)
		if _, got := off.post(path, `{"model":"u"}`); got != same {
			t.Errorf("%s: got %s, want %s", path, got, same)
		}
		_, got := on.post(path, `{"model":"u"}`)
		if want := want(strings.HasPrefix(path, responsesURL), same); got != want || got == same {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestHTTP2(t *testing.T) {
	authority := tlstest.NewAuthority(t)
	dir := t.TempDir()
	files := httpserver.TLSConfig{CertFile: filepath.Join(dir, "cert.pem"),
		KeyFile: filepath.Join(dir, "key.pem")}
	authority.WritePair(files.CertFile, files.KeyFile)
	certificates, err := httpserver.LoadCertificates(files)
	if err != nil {
		t.Fatal(err)
	}
	all := newRunners(t, startRunner(t))
	s := newService(t, all, nil)
	s.serve(httpserver.Options{HalfClose: true, TLS: certificates.Required()},
		httpserver.DefaultConfig())
	authority.WriteCA(filepath.Join(dir, "ca.pem"))
	ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	for _, path := range streamed {
		answer, err := (&http.Client{Transport: transport}).Do(s.request(t.Context(), path,
			streaming(path, bodies[path])))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.ProtoMajor != 2 || answer.StatusCode != http.StatusOK ||
			!bytes.Contains(text, []byte("data: ")) {
			t.Errorf("%s: got %d over %s: %s, %v", path, answer.StatusCode, answer.Proto, text, err)
		}
		if r := all.end(t); r.OutputTokens != 12 {
			t.Errorf("%s: reported %+v", path, r)
		}
	}
}

// FuzzAnswer compares an answer in pieces with the same in one.
func FuzzAnswer(f *testing.F) {
	for _, a := range answers {
		f.Add([]byte(a.text), a.responses, a.stream, uint16(5))
	}
	f.Fuzz(func(t *testing.T, text []byte, responses, stream bool, size uint16) {
		var results [2]string
		for i, size := range []int{len(text) + 1, int(size%64) + 1} {
			e, u := &events{responses: responses}, &usageScan{}
			r := newRewriter([]byte(`"u"`), responses, stream)
			tokens, out := 0, []byte{}
			for rest := text; len(rest) > 0; {
				piece := rest[:min(size, len(rest))]
				rest = rest[len(piece):]
				u.read(piece)
				tokens += e.count(piece)
				if !r.put(piece) {
					out = append(out, piece...)
					continue
				}
				buffer := make([]byte, 100)
				for n := r.take(buffer); n > 0; n = r.take(buffer) {
					out = append(out, buffer[:n]...)
				}
			}
			usage, found := u.usage()
			results[i] = fmt.Sprintf("%v %v %s", usage, found, out)
			if longest(text) < maxHead { // of a longer row that is cut, only the beginning counts
				results[i] += fmt.Sprint(tokens)
			}
		}
		if results[0] != results[1] {
			t.Fatalf("%q: in one piece\n%s\nin pieces\n%s", text, results[0], results[1])
		}
	})
}

func longest(text []byte) (n int) {
	for row := range bytes.SplitSeq(text, []byte("\n")) {
		n = max(n, len(row))
	}
	return n
}

// FuzzHeader sends any header, and expects an answer or a closed connection, and nothing private
// at the engine.
func FuzzHeader(f *testing.F) {
	f.Add("X-A: b", "Content-Length: 13")
	f.Add("Connection: authorization", "Transfer-Encoding: chunked")
	f.Add("Upgrade: websocket", "Expect: 100-continue")
	f.Add("Authorization: Bearer key-b", "X-Forwarded-For: a")
	const body = `{"model":"m"}`
	var fault atomic.Value
	engine := startEngine(f, func(_ http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err == nil && string(text) != body || r.Header.Get("Authorization") !=
			"Bearer of-the-engine" || r.Header.Get("Cookie") != "" ||
			len(r.Header["Authorization"]) != 1 {
			fault.Store(fmt.Sprintf("the engine got %q with %v", text, r.Header))
		}
	})
	s := newService(f, newRunners(f, engine), nil)
	f.Fuzz(func(t *testing.T, one, two string) {
		if strings.Contains(one+two, "\n\r\n") || strings.Contains(one+two, "\n\n") {
			return // the body would be another one
		}
		c := s.of(t).dial()
		c.send("POST /v1/completions HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer key-a\r\n"+
			"Content-Type: application/json\r\n%s\r\n%s\r\nContent-Length: 13\r\n"+
			"Connection: close\r\n\r\n%s", one, two, body)
		c.CloseWrite()
		c.status()
		c.Close()
		if found := fault.Load(); found != nil {
			t.Fatalf("%q, %q: %s", one, two, found)
		}
	})
}
