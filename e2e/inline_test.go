package e2e

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/internal/testservers/redis"
)

// newInline returns a daemon through which interactive requests pass to emulated engines, and their
// URLs.
func newInline(t *testing.T, engines int, set ...string) (*Daemon, []string) {
	t.Helper()
	var urls []string
	for range engines {
		urls = append(urls, startRunner(t, freeAddress(t), "--profile", "instant", "--model", "m",
			"--model", "m-lora-1", "--model", "m-lora-2"))
	}
	d := NewDaemon(t, Options{Upstreams: urls, Admin: freeAddress(t),
		Keys: "own=" + ownKey + ",foreign=" + foreignKey,
		Set:  append([]string{"inline.enabled=true"}, set...)})
	awaitInline(t, d, "m")
	return d, urls
}

// awaitInline waits until interactive requests of a model are answered.
func awaitInline(t *testing.T, d *Daemon, model string) {
	t.Helper()
	body := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"x"}],"max_tokens":1}`,
		model)
	await(t, 20*time.Second, "requests of "+model+" are answered", func() bool {
		status, _, _ := post(t, d.URL, "/v1/chat/completions", body, ownKey)
		return status == http.StatusOK
	})
}

// post sends a request and returns the whole answer.
func post(
	t *testing.T, server, path, body, key string, header ...string,
) (status int, answered http.Header, content string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server+path,
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+key)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(got)
}

// created is what two answers of an engine to the same request differ in: the time.
var created = regexp.MustCompile(`"(created|created_at|completed_at)":\s*[0-9.]+`)

// Every route answers through the daemon what the engine answers, byte for byte.
func TestInlineAnswersAreTheEngines(t *testing.T) {
	t.Parallel()
	d, engines := newInline(t, 1)
	text := `"messages":[{"role":"user","content":"Grüße, \u00e9\n"}],"max_tokens":20`
	for i, c := range []struct{ path, body string }{
		{"/v1/chat/completions", `{"model":"m",` + text + `}`},
		{"/v1/chat/completions", `{"stream":true,"model":"m",` + text + `}`},
		{"/v1/chat/completions", `{"model": "m","stream":true,"stream_options":{"include_usage":true},` +
			text + `}`},
		{"/v1/completions", `{"prompt":"Once","model":"m","max_tokens":9}`},
		{"/v1/completions", `{"prompt":"Once","model":"m","max_tokens":9,"stream":true}`},
		{"/v1/responses", `{"input":"Once","model":"m","max_output_tokens":9}`},
		{"/v1/responses", `{"input":"Once","model":"m","max_output_tokens":9,"stream":true}`},
		{"/v1/embeddings", `{"input":["a","b"],"model":"m"}`},
		{"/v1/moderations", `{"input":"a","model":"m"}`},
		{"/v1/rerank", `{"query":"a","documents":["a","b"],"model":"m"}`},
		{"/v1/score", `{"text_1":"a","text_2":["a","b"],"model":"m"}`},
		{"/v1/chat/completions", `{"model":"m","messages":[]}`},
	} {
		id := fmt.Sprintf("req-inline-%d", i)
		direct, _, want := post(t, engines[0], c.path, c.body, ownKey, "X-Request-Id", id)
		status, header, got := post(t, d.URL, c.path, c.body, ownKey, "X-Request-Id", id)
		want, got = created.ReplaceAllString(want, ""), created.ReplaceAllString(got, "")
		if status != direct || got != want {
			t.Errorf("%s %s: status %d, the engine's %d: %s", c.path, c.body, status, direct,
				cmp.Diff(want, got))
		}
		if header.Get("X-Queue-Wait-Ms") == "" || header.Get("X-Request-Id") != id {
			t.Errorf("%s: header %v", c.path, header)
		}
	}
}

// The official SDK for Node sees through the daemon what it sees of the engine itself.
func TestNodeSDKInline(t *testing.T) {
	t.Parallel()
	d, engines := newInline(t, 1)
	var through, direct map[string]any
	runNode(t, d, &through, "inline.mjs", "m")
	runNode(t, &Daemon{URL: engines[0]}, &direct, "inline.mjs", "m")
	for _, own := range []string{"unknown model", "no model"} { // worded by the daemon
		delete(direct, own)
	}
	want := map[string]any{"class": "NotFoundError", "status": 404.0, "code": "model_not_found",
		"param": nil, "type": "invalid_request_error"}
	if diff := cmp.Diff(want, through["unknown model"]); diff != "" {
		t.Errorf("an unknown model: %s", diff)
	}
	if e, _ := through["no model"].(map[string]any); e["class"] != "BadRequestError" ||
		e["param"] != "model" {
		t.Errorf("without a model: %v", e)
	}
	for _, own := range []string{"unknown model", "no model"} {
		delete(through, own)
	}
	if diff := cmp.Diff(direct, through); diff != "" {
		t.Errorf("through the daemon (+) and direct (-): %s", diff)
	}
}

const rollout = `
- name: team
  spec:
    useCases:
    - modelName: chat
      objective: {desiredAveragePerOutputTokenLatencyAtP95OverMultipleRequests: 500ms}
      targetModels:
      - {targetModelName: m-lora-1, weight: %d}
      - {targetModelName: m-lora-2, weight: %d}
    - modelName: ours
      tenants: [own]
      targetModels: [{targetModelName: m}]
`

// A use case rolls out an adapter by weights that change while requests run, and other tenants
// don't learn that theirs exist.
func TestUseCasesInline(t *testing.T) {
	t.Parallel()
	dir := newRegistryDir(t)
	dir.write("usecases.yaml", fmt.Sprintf(rollout, 20, 80))
	d, _ := newInline(t, 2, "registry.dir="+dir.path)
	awaitInline(t, d, "chat")
	c := sdk(d, ownKey, option.WithMaxRetries(0))
	targets := func(n int) map[string]int {
		t.Helper()
		var mu sync.Mutex
		var users sync.WaitGroup
		got, work := map[string]int{}, make(chan int)
		for range 8 {
			users.Go(func() {
				for range work {
					var raw *http.Response
					a, err := c.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
						Model: "chat", MaxTokens: openai.Int(1),
						Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("x")},
					}, option.WithResponseInto(&raw))
					if err != nil {
						t.Error(err)
						continue
					}
					if a.Model != "chat" {
						t.Errorf("the answer's model is %q", a.Model)
					}
					mu.Lock()
					got[raw.Header.Get("X-Tidefill-Target")]++
					mu.Unlock()
				}
			})
		}
		for i := range n {
			work <- i
		}
		close(work)
		users.Wait()
		return got
	}
	if got := targets(1000); got["m-lora-1"] < 180 || got["m-lora-1"] > 220 ||
		got["m-lora-1"]+got["m-lora-2"] != 1000 {
		t.Errorf("of 1000 requests at 20/80: %v", got)
	}
	dir.write("usecases.yaml", fmt.Sprintf(rollout, 100, 0))
	await(t, 10*time.Second, "the other weights are in force", func() bool {
		got := targets(10)
		return got["m-lora-1"] == 10
	})
	body := `{"model":"ours","messages":[{"role":"user","content":"x"}],"max_tokens":1}`
	if status, _, answer := post(t, d.URL, "/v1/chat/completions", body, ownKey); status != 200 {
		t.Errorf("of its tenant: status %d: %s", status, answer)
	}
	status, _, answer := post(t, d.URL, "/v1/chat/completions", body, foreignKey)
	other, _, unknown := post(t, d.URL, "/v1/chat/completions",
		strings.ReplaceAll(body, "ours", "none"), foreignKey)
	if status != 404 || other != 404 || strings.ReplaceAll(unknown, "none", "ours") != answer {
		t.Errorf("of another tenant: status %d: %s; a model that nobody has: status %d: %s", status,
			answer, other, unknown)
	}
	if text, exit := d.Run("explain", "--admin", "http://"+d.Admin); exit != 0 ||
		!strings.Contains(text, "chat") || !strings.Contains(text, "500.0 ms") {
		t.Errorf("explain: exit status %d\n%s", exit, text)
	}
}

// Batches run beside interactive requests, of which none fails, over a restart of the daemon and
// the loss of a runner.
func TestInlineBesideBatches(t *testing.T) {
	t.Parallel()
	var engines []string
	var kill func()
	for range 2 {
		var url string
		url, kill = startMortalRunner(t, freeAddress(t), "--profile", "instant", "--model", "m")
		engines = append(engines, url)
	}
	d := NewDaemon(t, Options{Upstreams: engines, Keys: "own=" + ownKey,
		Set: []string{"inline.enabled=true", "flowcontrol.policy=unlimited"}})
	awaitInline(t, d, "m")
	lines := NewLines("beside", "m", 3000)
	batch := d.Client().Submit(t, lines.Content, "")
	ask := func() int {
		status, _, _ := post(t, d.URL, "/v1/chat/completions",
			`{"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":2}`, ownKey)
		return status
	}
	for range 100 {
		if status := ask(); status != 200 {
			t.Errorf("status %d beside a batch", status)
		}
	}
	kill()
	for range 100 {
		if status := ask(); status != 200 {
			t.Errorf("status %d after the loss of a runner", status)
		}
	}
	d.Restart()
	awaitInline(t, d, "m")
	b := d.Client().AwaitEnd(t, batch.ID, time.Minute)
	if b.RequestCounts.Completed != 3000 {
		t.Errorf("the batch ended with %+v", b.RequestCounts)
	}
}

// Of processes that share a store one leads the pool, and the others pass requests on to it. When
// it dies, the next one takes over.
func TestInlineRequestsFindTheLeader(t *testing.T) {
	t.Parallel()
	engine := startRunner(t, freeAddress(t), "--profile", "instant", "--model", "m")
	set := append(clusterStore(t, postgres.Start(t)), liveStore(redis.Start(t))...)
	set = append(set, "inline.enabled=true", "dispatch.tuning.lease_ttl=3s")
	data := t.TempDir()
	var all []*Daemon
	for _, name := range []string{"a", "b", "c"} {
		o := Options{Data: data, Upstreams: []string{engine}, Keys: "own=" + ownKey,
			Args: []string{"--node", name}, Set: set, Admin: freeAddress(t)}
		if name == "c" {
			o.Roles = []string{"api"}
		}
		all = append(all, NewDaemon(t, o))
	}
	body := `{"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":3,"stream":true}`
	answers := func(d *Daemon) bool {
		status, header, text := post(t, d.URL, "/v1/chat/completions", body, ownKey)
		return status == 200 && strings.HasSuffix(text, "data: [DONE]\n\n") &&
			header.Get("X-Tidefill-Target") == "m"
	}
	for _, d := range all {
		await(t, 30*time.Second, "each process answers", func() bool { return answers(d) })
	}
	for range 20 {
		for _, d := range all {
			if !answers(d) {
				t.Error("a request was not answered")
			}
		}
	}
	if status, _, _ := post(t, all[2].URL, "/v1/chat/completions", body, "sk-no"); status != 401 {
		t.Errorf("with a wrong key: status %d", status)
	}
	all[0].Kill()
	for _, d := range all[1:] {
		await(t, 30*time.Second, "each process answers again", func() bool { return answers(d) })
	}
}
