package emulator

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/runner"
)

func TestEmbeddings(t *testing.T) {
	_, url := start(t, instant)
	type list struct {
		Data []struct {
			Index     int
			Embedding []float32
		}
		Usage struct {
			PromptTokens int `json:"prompt_tokens"`
		}
	}
	_, body := post(t, url+"/v1/embeddings",
		`{"model":"m","input":["a tide","a tide","an ebb"],"dimensions":3}`)
	floats := decode[list](t, body)
	if len(floats.Data) != 3 || floats.Data[2].Index != 2 || len(floats.Data[0].Embedding) != 3 ||
		floats.Usage.PromptTokens != 6 {
		t.Fatalf("unexpected: %s", body)
	}
	same, other := floats.Data[1].Embedding, floats.Data[2].Embedding
	if fmt.Sprint(floats.Data[0].Embedding) != fmt.Sprint(same) ||
		fmt.Sprint(same) == fmt.Sprint(other) {
		t.Errorf("equal texts must have equal vectors and others not: %s", body)
	}
	norm := 0.0
	for _, x := range same {
		norm += float64(x) * float64(x)
	}
	if math.Abs(norm-1) > 1e-5 {
		t.Errorf("length %v, want 1", norm)
	}

	_, body = post(t, url+"/v1/embeddings",
		`{"model":"m","input":"a tide","dimensions":3,"encoding_format":"base64"}`)
	raw, err := base64.StdEncoding.DecodeString(decode[struct {
		Data []struct{ Embedding string }
	}](t, body).Data[0].Embedding)
	if err != nil || len(raw) != 12 ||
		math.Float32frombits(binary.LittleEndian.Uint32(raw)) != same[0] {
		t.Errorf("base64 differs from floats: %s", body)
	}
}

func TestRerankScoreAndModerations(t *testing.T) {
	_, url := start(t, func(c *Config) { c.Profile = "llama-8b-a100" })
	_, body := post(t, url+"/v1/rerank",
		`{"model":"m","query":"tide","documents":["a","b",{"text":"c"}],"top_n":2}`)
	reranked := decode[struct {
		Results []struct {
			Index    int
			Document struct{ Text string }
			Score    float64 `json:"relevance_score"`
		}
	}](t, body).Results
	if len(reranked) != 2 || reranked[0].Score < reranked[1].Score ||
		reranked[0].Document.Text != string(rune('a'+reranked[0].Index)) {
		t.Errorf("rerank: %s", body)
	}
	_, body = post(t, url+"/v1/score", `{"model":"m","text_1":"tide","text_2":["a","b"]}`)
	scores := decode[struct {
		Data []struct{ Score float64 }
	}](t, body).Data
	if len(scores) != 2 {
		t.Errorf("score: %s", body)
	}
	for _, r := range reranked {
		if r.Index < 2 && r.Score != scores[r.Index].Score {
			t.Errorf("rerank gives %v, score %v for the same pair", r.Score, scores[r.Index].Score)
		}
	}
	_, body = post(t, url+"/v1/moderations", `{"model":"m","input":"calm"}`)
	if m := decode[struct {
		Results []struct{ Categories map[string]bool }
	}](t, body); len(m.Results) != 1 || len(m.Results[0].Categories) != len(moderationCategories) {
		t.Errorf("moderations: %s", body)
	}
}

type response struct {
	Object, Status    string
	IncompleteDetails *struct{ Reason string } `json:"incomplete_details"`
	Output            []struct{ Content []struct{ Text string } }
	Usage             struct {
		OutputTokens int `json:"output_tokens"`
	}
}

func TestResponses(t *testing.T) {
	_, url := start(t)
	const body = `{"model":"m","instructions":"be brief","input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]}],"max_output_tokens":2`
	_, whole := post(t, url+"/v1/responses", body+`}`)
	want := decode[response](t, whole)
	if want.Object != "response" || want.Status != "incomplete" ||
		want.IncompleteDetails.Reason != "max_output_tokens" || want.Usage.OutputTokens != 2 {
		t.Fatalf("unexpected: %s", whole)
	}
	_, streamed := post(t, url+"/v1/responses", body+`,"stream":true}`)
	text, last := "", ""
	for i, d := range events(t, streamed) {
		event := decode[struct {
			Type, Delta    string
			SequenceNumber int `json:"sequence_number"`
			Response       response
		}](t, d)
		if event.SequenceNumber != i {
			t.Errorf("event %d has number %d", i, event.SequenceNumber)
		}
		text, last = text+event.Delta, event.Type
		if event.Type == "response.incomplete" && event.Response.Output[0].Content[0].Text != text {
			t.Errorf("final text %q, deltas %q", event.Response.Output[0].Content[0].Text, text)
		}
	}
	if last != "response.incomplete" || text != want.Output[0].Content[0].Text {
		t.Errorf("stream ended with %q and text %q, want %q", last, text,
			want.Output[0].Content[0].Text)
	}
}

func TestOutputLength(t *testing.T) {
	_, url := start(t, instant, func(c *Config) {
		c.Output = Lengths{Median: 50, Sigma: 0, Max: 100}
	})
	for body, want := range map[string]string{
		`{"model":"m","prompt":"x"}`:                                         "50 stop",
		`{"model":"m","prompt":"x","max_tokens":50}`:                         "50 stop",
		`{"model":"m","prompt":"x","max_tokens":49}`:                         "49 length",
		`{"model":"m","prompt":"x","max_tokens":70,"ignore_eos":true}`:       "70 length",
		`{"model":"m","prompt":"x","max_tokens":90,"min_tokens":80}`:         "80 stop",
		`{"model":"m","prompt":[1,2,3],"max_tokens":5}`:                      "5 length",
		`{"model":"m","prompt":[[1,2],[3]],"max_tokens":5}`:                  "10 length",
		`{"model":"m","prompt_token_ids":[1,2,3],"max_completion_tokens":5}`: "5 length",
	} {
		_, answer := post(t, url+"/v1/completions", body)
		got := decode[chat](t, answer)
		if s := fmt.Sprintf("%d %s", got.Usage.CompletionTokens,
			*got.Choices[0].FinishReason); s != want {
			t.Errorf("%s: got %s, want %s", body, s, want)
		}
		if strings.Contains(body, "[") && got.Usage.PromptTokens != 3 {
			t.Errorf("%s: %d prompt tokens, want the 3 given", body, got.Usage.PromptTokens)
		}
	}
}

func TestBadRequests(t *testing.T) {
	_, url := start(t, instant, func(c *Config) { c.MaxModelLen = 100 })
	const chatPath = "/v1/chat/completions"
	for _, test := range []struct {
		path, body string
		status     int
		code       string
		param      string
	}{
		{chatPath, `{`, 400, "invalid_json", ""},
		{chatPath, ``, 400, "invalid_json", ""},
		{chatPath, `{"model":3}`, 400, "invalid_value", "model"},
		{chatPath, `{"messages":[]}`, 400, "invalid_value", "model"},
		{chatPath, `{"model":"gone","messages":[]}`, 404, "model_not_found", "model"},
		{chatPath, `{"model":"m"}`, 400, "invalid_value", "messages"},
		{chatPath, `{"model":"m","messages":[{"role":"user","content":7}]}`, 400, "invalid_value",
			"messages"},
		{chatPath, `{"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":0}`, 400,
			"invalid_value", "max_tokens"},
		{chatPath, `{"model":"m","messages":[{"role":"user","content":"x"}],"n":0}`, 400,
			"invalid_value", "n"},
		{chatPath, `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("x",
			400) + `"}]}`, 400, "context_length_exceeded", ""},
		{"/v1/completions", `{"model":"m"}`, 400, "invalid_value", "prompt"},
		{"/v1/completions", `{"model":"m","prompt":[]}`, 400, "invalid_value", "prompt"},
		{"/v1/embeddings", `{"model":"m","input":true}`, 400, "invalid_value", "input"},
		{"/v1/embeddings", `{"model":"m","input":"x","stream":true}`, 400, "invalid_value",
			"stream"},
		{"/v1/embeddings", `{"model":"m","input":"x","encoding_format":"hex"}`, 400,
			"invalid_value", "encoding_format"},
		{"/v1/rerank", `{"model":"m","documents":["x"]}`, 400, "invalid_value", "query"},
		{"/v1/score", `{"model":"m","text_1":["x","y"],"text_2":"x"}`, 400, "invalid_value",
			"text_1"},
		{"/v1/audio", `{}`, 404, "not_found", ""},
	} {
		resp, body := post(t, url+test.path, test.body)
		got := decode[runner.ErrorBody](t, body).Error
		param := ""
		if got.Param != nil {
			param = *got.Param
		}
		if resp.StatusCode != test.status || got.Code != test.code || param != test.param ||
			got.Message == "" || got.Type != "invalid_request_error" {
			t.Errorf("%s %.60s: %d %s", test.path, test.body, resp.StatusCode, body)
		}
	}
	for header, value := range map[string]string{"X-Priority": "urgent", "X-Cache-Mode": "maybe",
		"X-Cache-Tag": strings.Repeat("x", 65)} {
		if resp, body := post(t, url+chatPath, hello, header, value); resp.StatusCode != 400 {
			t.Errorf("%s: %s: %d %s", header, value, resp.StatusCode, body)
		}
	}
}

func get(t testing.TB, url string) (*http.Response, string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	return resp, read(t, resp)
}

func TestModelsAndHealth(t *testing.T) {
	s, url := start(t, func(c *Config) { c.Models = []string{"a", "org/b"} })
	if _, body := get(t, url+"/v1/models"); !strings.Contains(body, `"id":"a"`) ||
		!strings.Contains(body, `"id":"org/b"`) {
		t.Errorf("models: %s", body)
	}
	if resp, body := get(t, url+"/v1/models/org/b"); resp.StatusCode != 200 ||
		decode[model](t, body).ID != "org/b" {
		t.Errorf("model: %s", body)
	}
	s.SetFaults(Faults{RefuseModels: []string{"a"}})
	if resp, _ := get(t, url+"/v1/models/a"); resp.StatusCode != 404 {
		t.Errorf("refused model: %d", resp.StatusCode)
	}
	if resp, body := post(t, url+"/v1/completions",
		`{"model":"a","prompt":"x"}`); resp.StatusCode != 404 {
		t.Errorf("refused model: %s", body)
	}
	resp, body := get(t, url+"/health")
	if h := decode[runner.HealthStatus](t, body); resp.StatusCode != 200 ||
		h.Status != runner.Healthy || h.ModelsLoaded != 1 {
		t.Errorf("health: %d %s", resp.StatusCode, body)
	}
}

func TestCapabilitiesAreCachedForTheirTTL(t *testing.T) {
	s, url := start(t)
	resp, body := get(t, url+runner.CapabilitiesPath)
	c := decode[runner.Capabilities](t, body)
	if resp.StatusCode != 200 || c.Health != runner.Healthy || c.Models.Loaded[0].ID != "m" ||
		c.Queue.MaxDepth != 512 || !c.Capabilities.Streaming {
		t.Errorf("capabilities: %s", body)
	}
	if got := resp.Header.Get("Cache-Control"); got != "max-age=5" {
		t.Errorf("cache control %q", got)
	}
	s.SetFaults(Faults{RefuseModels: []string{"m"}})
	if _, again := get(t, url+runner.CapabilitiesPath); again != body {
		t.Error("read again within the time to live")
	}
	if later := string(s.readCapabilities(time.Now().Add(runner.CapabilitiesTTL))); later == body {
		t.Error("not read again after the time to live")
	}
}

func TestNotServingBeforeRun(t *testing.T) {
	s, err := New(DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	url := serve(t, s)
	for _, path := range []string{"/health", runner.CapabilitiesPath} {
		if resp, body := get(t, url+path); resp.StatusCode != 503 {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
	if resp, body := post(t, url+"/v1/completions",
		`{"model":"emulated-model","prompt":"x"}`); resp.StatusCode != 503 ||
		resp.Header.Get("Retry-After") == "" {
		t.Errorf("completions: %d %s", resp.StatusCode, body)
	}
}

func TestTenantRates(t *testing.T) {
	tenants := newTenants(map[string]int{"x": 2, "default": 1})
	now := time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC)
	admit := func(tenant string, now time.Time, want bool) {
		t.Helper()
		if got := tenants.admit(tenant, now) == nil; got != want {
			t.Errorf("%q at %v admitted: %t", tenant, now, got)
		}
	}
	admit("x", now, true)
	admit("x", now, true)
	admit("x", now, false)
	admit("y", now, true)
	admit("y", now, false)
	admit("", now, true)
	admit("", now, false)
	if f := tenants.admit("x", now); f.retryAfter != 30*time.Second || f.status != 429 ||
		*f.body.Limit != 2 {
		t.Errorf("refused with %+v", f)
	}
	admit("x", now.Add(30*time.Second), true)
}

func TestValidate(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	err := Config{Profile: "gpu", Faults: Faults{Reset: 0.7, Hang: 0.7},
		Interactive: Interactive{RPS: 1, Swing: 2}}.Validate()
	if err == nil {
		t.Fatal("valid")
	}
	for _, part := range []string{"models", "speedup", "max_queue_depth", "output", "swing",
		"sum to 1.4", `profile is "gpu", want one of instant, llama-70b-a100`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("nothing about %s in: %v", part, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	c := DefaultConfig()
	c.Models, c.Profile = []string{"m"}, Instant
	s, err := New(c)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(hello)
	f.Add(
		`{"model":"m","prompt":[[1,2],[3]],"text_1":["a"],"text_2":["b\n"],"query":"q","documents":[{"text":"x"}],"input":[{"content":[{"type":"image"}]}]}`)
	f.Add(
		`{"model":"m","messages":[{}],"prompt":"\ud800","input":["",""],"documents":"d","query":"q","text_1":"","text_2":""}`)
	readers := []route{
		{readChat, chatReply{}}, {readCompletion, completionReply{}},
		{readResponse, responseReply{}},
		{readEmbedding, embeddingReply{}}, {readModeration, moderationReply{}},
		{readRerank, rerankReply{}}, {readScore, scoreReply{}},
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, r := range readers {
			req, failure := s.parse([]byte(body), http.Header{}, r)
			if failure != nil {
				if failure.status < 400 || failure.status > 499 {
					t.Fatalf("status %d", failure.status)
				}
				continue
			}
			for _, q := range req.sequences {
				if q.tokens < 1 || q.output < 1 || len(q.prompt.blocks(0)) > q.tokens {
					t.Fatalf("%d prompt and %d output tokens, %d blocks", q.tokens, q.output, len(
						q.prompt.blocks(0)))
				}
			}
			a := &answer{inference: req, id: "x", modelJSON: s.models["m"]}
			decode[map[string]any](t, string(r.reply.whole(a)))
		}
	})
}
