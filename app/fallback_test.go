package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/registry"
)

// modelServer is a model server whose answers have 100 tokens in all.
type modelServer struct {
	*httptest.Server
	mu     sync.Mutex
	status int           // of its answers
	hold   chan struct{} // nil: it answers at once
	bodies []string
	last   http.Header
}

func startServer(t *testing.T) *modelServer {
	t.Helper()
	s := &modelServer{status: http.StatusOK}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *modelServer) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/chat/completions" {
		http.NotFound(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.bodies, s.last = append(s.bodies, string(body)), r.Header.Clone()
	status, hold := s.status, s.hold
	s.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return
		}
	}
	var asked struct {
		Model string `json:"model"`
	}
	_ = json.Unmarshal(body, &asked)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if status != http.StatusOK {
		fmt.Fprint(w, `{"error":{"message":"busy","type":"server_error","code":null}}`)
		return
	}
	fmt.Fprintf(w, `{"id":"x","object":"chat.completion","created":1,"model":%q,"choices":[{`+
		`"index":0,"message":{"role":"assistant","content":"yes"},"finish_reason":"stop"}],`+
		`"usage":{"prompt_tokens":60,"completion_tokens":40,"total_tokens":100}}`, asked.Model)
}

func (s *modelServer) answers(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

func (s *modelServer) got() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.bodies...)
}

// withFallback returns a configuration of a pool of one runner with a fallback elsewhere, of which
// a token costs 1.
func withFallback(
	t *testing.T, data string, local, elsewhere *modelServer, money float64,
) config.Config {
	t.Helper()
	key := filepath.Join(data, "key")
	if err := os.WriteFile(key, []byte("TOPSECRET\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := apptest.Config(data)
	cfg.Inline.Enabled = true
	cfg.Upstreams = []dispatch.Upstream{{Name: "gpu", Pool: "gpus", URL: local.URL,
		Models: []string{"m"}, Metrics: "none"}}
	cfg.Pools = []config.PoolConfig{{Pool: registry.Pool{Name: "gpus", Models: []string{"m"},
		Max: 1, AllowImplicit: true, Fallback: registry.Fallback{URL: elsewhere.URL,
			APIKeyFile: key, Models: map[string]string{"m": "cloud/m"},
			Headers:     map[string]string{"X-Project": "batch"},
			MoneyPerDay: money, PriceInput: 1e6, PriceOutput: 1e6}}}}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	return cfg
}

const chat = `{"messages":[{"role":"user","content":"hi"}],  "model": "m" ,"max_tokens":10}`

// ask sends an interactive request and returns its answer.
func ask(t *testing.T, a *app.App) (status int, header http.Header, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
		a.URL()+"/v1/chat/completions", strings.NewReader(chat))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(text)
}

func awaitAnswer(t *testing.T, a *app.App) {
	t.Helper()
	eventually(t, "an answer", func() bool {
		status, _, _ := ask(t, a)
		return status == http.StatusOK
	})
}

// Requests that the pool refuses are answered elsewhere, within the budget of a day.
func TestInteractiveRequestsFallBack(t *testing.T) {
	data := t.TempDir()
	local, elsewhere := startServer(t), startServer(t)
	cfg := withFallback(t, data, local, elsewhere, 150)
	a, stop := apptest.Start(t, cfg, app.Options{})
	awaitAnswer(t, a)
	if _, header, _ := ask(t, a); header.Get("X-Tidefill-Fallback") != "" {
		t.Errorf("the pool's answer has the header %v", header)
	}
	if got := elsewhere.got(); len(got) > 0 {
		t.Fatalf("while the pool answers, the server elsewhere got %q", got)
	}

	local.answers(http.StatusServiceUnavailable)
	status, header, text := ask(t, a)
	if status != http.StatusOK || header.Get("X-Tidefill-Fallback") != "gpus" ||
		header.Get("X-Tidefill-Wait-Reason") != "fallback" {
		t.Fatalf("status %d, %v: %s", status, header, text)
	}
	if !strings.Contains(text, `"model":"m"`) {
		t.Errorf("the user sees another model: %s", text)
	}
	want := strings.Replace(chat, `"m"`, `"cloud/m"`, 1)
	if got := elsewhere.got(); len(got) != 1 || got[0] != want {
		t.Errorf("the server elsewhere got %q, want %q", got, want)
	}
	elsewhere.mu.Lock()
	last := elsewhere.last
	elsewhere.mu.Unlock()
	if last.Get("Authorization") != "Bearer TOPSECRET" || last.Get("X-Project") != "batch" {
		t.Errorf("its header is %v", last)
	}
	for _, private := range []string{"Traceparent", "X-Forwarded-For", "X-Request-Id",
		"X-Priority", "User-Agent"} {
		if last.Get(private) != "" {
			t.Errorf("it got %s: %s", private, last.Get(private))
		}
	}

	status, _, text = ask(t, a) // 100 of 150 were spent
	if status != http.StatusOK {
		t.Fatalf("with money left: status %d: %s", status, text)
	}
	status, _, text = ask(t, a)
	if status != http.StatusServiceUnavailable || !strings.Contains(text, "busy") {
		t.Errorf("without money: status %d: %s", status, text)
	}
	metrics := awaitPage(t, a.AdminURL()+"/metrics", `output",pool="gpus"} 80`)
	for _, series := range []string{`tidefill_fallback_requests_total{pool="gpus"} 2`,
		`tidefill_fallback_lines_total{pool="gpus"} 0`,
		`tidefill_fallback_tokens_total{kind="output",pool="gpus"} 80`,
		`tidefill_fallback_money_today{pool="gpus"} 200`,
		`tidefill_fallback_money_per_day{pool="gpus"} 150`} {
		if !strings.Contains(metrics, series) {
			t.Errorf("the metrics lack %s", series)
		}
	}
	awaitPage(t, a.AdminURL()+"/admin/pools", `"fallback":{"instead":"gpus","requests":2,`+
		`"lines":0,"input_tokens":120,"output_tokens":80,"money_today":200,"money_per_day":150}`)
	for _, page := range []string{metrics, pageOf(t, a.AdminURL()+"/admin/config"),
		pageOf(t, a.AdminURL()+"/admin/pools")} {
		if strings.Contains(page, "TOPSECRET") {
			t.Error("a page shows the key")
		}
	}

	stop() // a restart is no other day
	a, _ = apptest.Start(t, cfg, app.Options{})
	if status, _, text := ask(t, a); status == http.StatusOK {
		t.Errorf("after a restart: %s", text)
	}
	if n := len(elsewhere.got()); n != 2 {
		t.Errorf("the server elsewhere got %d requests, want 2", n)
	}
}

// A request that three runners refuse or don't answer goes elsewhere too, and no runner is asked
// twice.
func TestRequestsFallBackAfterAllRunners(t *testing.T) {
	local, elsewhere := startServer(t), startServer(t)
	cfg := withFallback(t, t.TempDir(), local, elsewhere, 1e9)
	local.answers(http.StatusServiceUnavailable)
	others := []*modelServer{startServer(t), startServer(t), startServer(t)}
	for i, other := range others {
		other.answers(http.StatusServiceUnavailable)
		u := cfg.Upstreams[0]
		u.Name, u.URL = fmt.Sprint("gpu-", i), other.URL
		cfg.Upstreams = append(cfg.Upstreams, u)
	}
	others[2].Close()
	a, _ := apptest.Start(t, cfg, app.Options{})
	awaitAnswer(t, a)
	for range 3 {
		before := len(local.got()) + len(others[0].got()) + len(others[1].got())
		status, header, text := ask(t, a)
		if status != http.StatusOK || header.Get("X-Tidefill-Fallback") != "gpus" {
			t.Fatalf("status %d, %v: %s", status, header, text)
		}
		after := len(local.got()) + len(others[0].got()) + len(others[1].got())
		if after-before > 3 {
			t.Errorf("runners got the request %d times", after-before)
		}
	}
	elsewhere.answers(http.StatusTooManyRequests)
	if status, _, text := ask(t, a); status != http.StatusTooManyRequests &&
		status != http.StatusServiceUnavailable || !strings.Contains(text, "busy") {
		t.Errorf("refused by all: status %d: %s", status, text)
	}
}

// awaitPage waits until a page has a text, and returns the page.
func awaitPage(t *testing.T, url, text string) string {
	t.Helper()
	page := ""
	defer func() {
		if t.Failed() {
			t.Log(page)
		}
	}()
	eventually(t, url+" with "+text, func() bool {
		page = pageOf(t, url)
		return strings.Contains(page, text)
	})
	return page
}

func pageOf(t *testing.T, url string) string {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A batch whose deadline the pool can't meet is answered elsewhere, another one is not.
func TestLateBatchesFallBack(t *testing.T) {
	local, elsewhere := startServer(t), startServer(t)
	local.hold = make(chan struct{})
	cfg := withFallback(t, t.TempDir(), local, elsewhere, 1e9)
	cfg.Autoscale.Step = 200 * time.Millisecond
	cfg.Tracing.Endpoint = startCollector(t).URL
	a, _ := apptest.Start(t, cfg, app.Options{})
	c, err := client.New(a.URL(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	submit := func(n int, content, window string) client.Batch {
		t.Helper()
		lines := strings.ReplaceAll(apptest.BatchFile(n), `"content":"`, `"content":"`+content)
		file, err := c.Upload(t.Context(), "l.jsonl", strings.NewReader(lines), int64(len(lines)))
		if err != nil {
			t.Fatal(err)
		}
		b, err := c.CreateBatch(t.Context(), client.BatchRequest{InputFileID: file.ID,
			Endpoint: "/v1/chat/completions", CompletionWindow: window})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	submit(100, "patient ", "24h")
	eventually(t, "a line to be sent", func() bool { return len(local.got()) > 0 })
	decided := map[float64]bool{}
	eventually(t, "some decisions", func() bool {
		var scaling struct{ Decided float64 }
		callJSON(t, http.MethodGet, a.AdminURL()+"/admin/scaling", "", nil, &scaling)
		if scaling.Decided > 0 {
			decided[scaling.Decided] = true
		}
		return len(decided) > 3
	})
	if got := elsewhere.got(); len(got) > 0 {
		t.Fatalf("the server elsewhere got lines of a batch that has time: %q", got)
	}
	// More prompts than a replica can read in a minute.
	late := submit(3000, "late "+strings.Repeat("x ", 2000), "1m")
	eventually(t, "lines to go elsewhere", func() bool { return len(elsewhere.got()) >= 100 })
	close(local.hold)
	eventually(t, "the batch to end", func() bool {
		b, err := c.Batch(t.Context(), late.ID)
		if err != nil {
			t.Fatal(err)
		}
		late = b
		return b.CompletedAt > 0
	})
	if late.Status != "completed" || late.Counts.Completed != 3000 {
		t.Errorf("the batch is %s, with %+v", late.Status, late.Counts)
	}
	for _, body := range elsewhere.got() {
		if !strings.HasPrefix(body, `{"model":"cloud/m","messages":[{`) ||
			!strings.Contains(body, `"content":"late `) {
			t.Fatalf("the server elsewhere got %.200s", body)
		}
	}
	for server, traced := range map[*modelServer]bool{local: true, elsewhere: false} {
		server.mu.Lock()
		if got := server.last.Get("Traceparent"); (got != "") != traced {
			t.Errorf("a server got the traceparent %q, want one: %v", got, traced)
		}
		server.mu.Unlock()
	}
}
