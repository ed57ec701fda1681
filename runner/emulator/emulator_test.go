package emulator

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// start serves an emulator built from the default configuration as edited.
func start(t testing.TB, edit ...func(*Config)) (*Server, string) {
	t.Helper()
	c := DefaultConfig()
	c.Models = []string{"m"}
	c.Speedup = 200
	for _, f := range edit {
		f(&c)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	web := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Errorf("run: %v", err)
		}
		web.CloseClientConnections()
		web.Close()
	})
	until(t, s.serving)
	return s, web.URL
}

func instant(c *Config) { c.Profile = Instant }

func post(t testing.TB, url, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

func decode[T any](t testing.TB, body string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return v
}

type chat struct {
	ID, Object, Model string
	Created           int64
	Choices           []struct {
		Index        int
		Message      struct{ Role, Content string }
		Delta        struct{ Role, Content string }
		Text         string
		FinishReason *string `json:"finish_reason"`
	}
	Usage *struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
		TotalTokens      int `json:"total_tokens"`
	}
}

const hello = `{"model":"m","messages":[{"role":"user","content":"hello there"}],"max_tokens":20}`

func TestChat(t *testing.T) {
	for name, profile := range map[string]string{"instant": Instant, "engine": "llama-8b-a100"} {
		t.Run(name, func(t *testing.T) {
			_, url := start(t, func(c *Config) { c.Profile = profile })
			resp, body := post(t, url+"/v1/chat/completions", hello, "X-Request-Id", "line-7")
			if resp.StatusCode != 200 || resp.Header.Get("X-Request-Id") != "line-7" {
				t.Fatalf("%d %v %s", resp.StatusCode, resp.Header, body)
			}
			got := decode[chat](t, body)
			choice := got.Choices[0]
			words := len(strings.Fields(choice.Message.Content))
			if got.Object != "chat.completion" || got.Model != "m" ||
				choice.Message.Role != "assistant" || words == 0 ||
				words != got.Usage.CompletionTokens {
				t.Errorf("unexpected answer: %s", body)
			}
			if got.Usage.PromptTokens != 5 || got.Usage.TotalTokens != 5+words {
				t.Errorf("usage %+v for %d words", got.Usage, words)
			}
			for _, h := range []string{"X-Queue-Wait-Ms", "X-Gpu-Time-Ms", "X-Cache-Hit",
				"X-Cache-Tokens-Reused"} {
				if resp.Header.Get(h) == "" {
					t.Errorf("no %s", h)
				}
			}
			_, again := post(t, url+"/v1/chat/completions", hello)
			if decode[chat](t, again).Choices[0].Message.Content != choice.Message.Content {
				t.Error("the same request got another answer")
			}
		})
	}
}

// events reads the data of server-sent events.
func events(t testing.TB, body string) (data []string) {
	t.Helper()
	lines := bufio.NewScanner(strings.NewReader(body))
	for lines.Scan() {
		if d, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			data = append(data, d)
		}
	}
	return data
}

func TestStreamEqualsPlainResponse(t *testing.T) {
	for name, profile := range map[string]string{"instant": Instant, "engine": "llama-8b-a100"} {
		for path, body := range map[string]string{
			"/v1/chat/completions": hello[:len(hello)-1] + `,"n":2`,
			"/v1/completions":      `{"model":"m","prompt":["one","two"],"max_tokens":7`,
		} {
			t.Run(name+path, func(t *testing.T) {
				_, url := start(t, func(c *Config) { c.Profile = profile })
				_, plainBody := post(t, url+path, body+`}`)
				whole := decode[chat](t, plainBody)
				resp, streamed := post(
					t, url+path, body+`,"stream":true,"stream_options":{"include_usage":true}}`)
				if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
					t.Fatalf("content type %q: %s", got, streamed)
				}
				data := events(t, streamed)
				if data[len(data)-1] != "[DONE]" {
					t.Fatalf("stream ends with %s", data[len(data)-1])
				}
				texts, finish := make([]string, 2), make([]string, 2)
				var usage any
				for _, d := range data[:len(data)-1] {
					chunk := decode[chat](t, d)
					for _, c := range chunk.Choices {
						texts[c.Index] += c.Delta.Content + c.Text
						if c.FinishReason != nil {
							finish[c.Index] += *c.FinishReason
						}
					}
					if chunk.Usage != nil {
						usage = *chunk.Usage
					}
				}
				for i, c := range whole.Choices {
					if want := c.Message.Content + c.Text; texts[i] != want ||
						finish[i] != *c.FinishReason {
						t.Errorf(
							"choice %d: streamed %q (%s), whole %q (%s)", i, texts[i], finish[i],
							want, *c.FinishReason)
					}
				}
				if usage != any(*whole.Usage) {
					t.Errorf("usage streamed %+v, whole %+v", usage, *whole.Usage)
				}
				if profile != Instant && resp.Trailer.Get("X-Gpu-Time-Ms") == "" {
					t.Error("no GPU time in the trailer")
				}
			})
		}
	}
}
