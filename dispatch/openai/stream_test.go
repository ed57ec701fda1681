package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidefill/tidefill/internal/batchfile"
)

var noWatch = &Watch{First: func() {}, More: func(int, time.Duration) {}}

// whole reads a stream as the client would.
func whole(path, stream string, watch *Watch) (status int, body string, err error) {
	return joined(path, strings.NewReader(stream), watch)
}

func joined(path string, stream io.Reader, watch *Watch) (status int, body string, err error) {
	return joinedWithin(1<<20, path, stream, watch)
}

// joinedWithin joins a stream to an answer of limited size.
func joinedWithin(
	limit int64, path string, stream io.Reader, watch *Watch,
) (status int, body string, err error) {
	if watch == nil {
		watch = noWatch
	}
	c := &Client{cfg: Config{MaxAnswer: limit}}
	response := &http.Response{StatusCode: 200, Body: io.NopCloser(stream)}
	a := Answer{Status: response.StatusCode}
	err = c.readStream(Request{Path: path, Watch: watch}, response, new(Scratch), &a)
	return a.Status, string(a.Body), err
}

// sse makes events of chunks and ends them.
func sse(chunks ...string) string {
	return "data: " + strings.Join(append(chunks, "[DONE]"), "\n\ndata: ") + "\n\n"
}

// cutEnd removes the end that sse makes.
func cutEnd(stream string) string { return strings.TrimSuffix(stream, "data: [DONE]\n\n") }

const usageChunk = `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`

func chatChunk(choice string) string {
	return `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[` +
		choice + `]}`
}

func TestStreamsAreAssembled(t *testing.T) {
	for name, c := range map[string]struct {
		path, stream, want string
	}{
		"chat": {"/v1/chat/completions", sse(
			chatChunk(
				`{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}`),
			chatChunk(
				`{"index":0,"delta":{"content":"H\u00e9"},"logprobs":null,"finish_reason":null}`),
			chatChunk(
				`{"index":0,"delta":{"content":"y\n"},"finish_reason":"stop","stop_reason":null}`),
			usageChunk),
			`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"H\u00e9y\n","refusal":null},"logprobs":null,"finish_reason":"stop","stop_reason":null}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`,
		},
		"surrogate halves meet, numbers stay as written": {"/v1/chat/completions", sse(
			chatChunk(
				`{"index":0,"delta":{"content":"\ud83d"},"logprobs":{"content":[{"token":"a","logprob":-0.10}]}}`),
			chatChunk(
				`{"index":0,"delta":{"content":"\ude00"},"logprobs":{"content":[{"token":"b","logprob":-1e-7}]},"finish_reason":"length"}`),
			usageChunk),
			`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"\ud83d\ude00","refusal":null},"logprobs":{"content":[{"token":"a","logprob":-0.10},{"token":"b","logprob":-1e-7}]},"finish_reason":"length"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`,
		},
		"tools": {"/v1/chat/completions", sse(
			chatChunk(`{"index":0,"delta":{"role":"assistant","content":""}}`),
			chatChunk(
				`{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t1","type":"function","function":{"name":"look","arguments":""}}]}}`),
			chatChunk(
				`{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]}}`),
			chatChunk(
				`{"index":0,"delta":{"tool_calls":[{"index":0,"id":null,"function":{"name":"","arguments":"1}"}},{"index":1,"id":"t2","type":"function","function":{"name":"go","arguments":"{}"}}]}}`),
			chatChunk(`{"index":0,"delta":{},"finish_reason":"tool_calls"}`),
			usageChunk),
			`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"t1","type":"function","function":{"name":"look","arguments":"{\"a\":1}"}},{"id":"t2","type":"function","function":{"name":"go","arguments":"{}"}}]},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`,
		},
		"reasoning, two choices, what a server adds": {"/v1/chat/completions", sse(
			`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","system_fingerprint":"fp","provider":"x","obfuscation":"aa","choices":[{"index":1,"delta":{"role":"assistant","reasoning_content":"be"}}],"usage":null}`,
			`{"id":"c","object":"chat.completion.chunk","created":2,"model":"m","system_fingerprint":"fp","provider":"x","obfuscation":"b","choices":[{"index":0,"delta":{"role":"assistant","refusal":"no"},"finish_reason":""}],"usage":null}`,
			`{"id":"c","object":"chat.completion.chunk","created":2,"model":"m","system_fingerprint":"fp","service_tier":"flex","choices":[{"index":1,"delta":{"reasoning_content":"cause","content":"yes"},"finish_reason":"stop"},{"index":0,"delta":{},"finish_reason":"content_filter"}],"usage":{"total_tokens":9}}`),
			`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":"no"},"logprobs":null,"finish_reason":"content_filter"},{"index":1,"message":{"role":"assistant","content":"yes","refusal":null,"reasoning_content":"because"},"logprobs":null,"finish_reason":"stop"}],"usage":{"total_tokens":9},"system_fingerprint":"fp","provider":"x","service_tier":"flex"}`,
		},
		"completion": {"/v1/completions", sse(
			`{"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"a","logprobs":{"tokens":["a"],"text_offset":[0],"token_logprobs":[-1],"top_logprobs":[{"a":-1}]},"finish_reason":null}]}`,
			`{"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"b","logprobs":{"tokens":["b"],"text_offset":[1],"token_logprobs":[null],"top_logprobs":[null]},"finish_reason":"length","stop_reason":7}]}`,
			`{"id":"c","object":"text_completion","created":1,"model":"m","choices":[],"usage":{"completion_tokens":2}}`),
			`{"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"ab","logprobs":{"text_offset":[0,1],"token_logprobs":[-1,null],"tokens":["a","b"],"top_logprobs":[{"a":-1},null]},"finish_reason":"length","stop_reason":7}],"usage":{"completion_tokens":2}}`,
		},
		"responses": {"/v1/responses",
			"event: response.created\ndata: {\"type\":\"response.created\"," +
				"\"response\":{\"id\":\"r\",\"output\":[]}}\n\n" +
				"data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n" +
				"data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\", " +
				"\"output\":[{\"text\":\"a\"}],\"usage\":{\"output_tokens\":1}}}\n\n",
			`{"id":"r", "output":[{"text":"a"}],"usage":{"output_tokens":1}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			status, got, err := whole(c.path, c.stream, nil)
			if err != nil || status != 200 || got != c.want {
				t.Errorf("got %d, %v,\n%s\nwant\n%s", status, err, got, c.want)
			}
		})
	}
}

func TestUnknownStreamsAreNotAssembled(t *testing.T) {
	finish := chatChunk(`{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}`)
	for name, c := range map[string]struct {
		stream string
		want   error
	}{
		"an unknown member changes": {sse(chatChunk(`{"index":0,"delta":{"audio":"a"}}`),
			chatChunk(`{"index":0,"delta":{"audio":"b"},"finish_reason":"stop"}`), usageChunk),
			ErrNotAssembled},
		"two answers in one": {sse(strings.Replace(finish, `"id":"c"`, `"id":"d"`,
			1), usageChunk), ErrNotAssembled},
		"a tool's name in pieces": {
			sse(
				chatChunk(
					`{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"a"}}]}}`),
				chatChunk(
					`{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"name":"b"}}]},"finish_reason":"stop"}`), usageChunk), ErrNotAssembled},
		"a tool call left out": {
			sse(
				chatChunk(
					`{"index":0,"delta":{"tool_calls":[{"index":1,"id":"t"}]},"finish_reason":"stop"}`), usageChunk), ErrNotAssembled},
		"content of another kind": {
			sse(chatChunk(`{"index":0,"delta":{"content":["a"]},"finish_reason":"stop"}`),
				usageChunk), ErrNotAssembled},
		"a choice without an index": {
			sse(chatChunk(`{"delta":{"content":"a"},"finish_reason":"stop"}`), usageChunk),
			ErrNotAssembled},
		"no usage": {sse(finish), ErrNotAssembled},
		"more after the end": {sse(finish, usageChunk) + "data: {}\n\n",
			ErrNotAssembled},
		"no JSON":   {sse(finish, "oops"), ErrNotAssembled},
		"no object": {sse(finish, "[]"), ErrNotAssembled},
		"an error without a status": {
			sse(finish, `{"error":{"message":"gone","code":"x"}}`), ErrBrokenOff},
		"cut before the end": {"data: " + chatChunk(
			`{"index":0,"delta":{"content":"a"}}`) + "\n\n", io.ErrUnexpectedEOF},
		"cut within an event": {"data: " + finish + "\n\ndata: " + usageChunk[:99],
			io.ErrUnexpectedEOF},
		"cut before one choice's end": {
			cutEnd(sse(finish, chatChunk(`{"index":1,"delta":{"content":"a"}}`))),
			io.ErrUnexpectedEOF},
		"cut before the first choice": {cutEnd(sse(usageChunk)), io.ErrUnexpectedEOF},
		"nothing":                     {"", io.ErrUnexpectedEOF},
		"larger than an answer may be": {
			sse(strings.Replace(finish, `"a"`, `"`+strings.Repeat("a", 600_000)+`"`, 1), finish,
				strings.Replace(finish, `"a"`, `"`+strings.Repeat("a", 600_000)+`"`, 1)),
			errTooLarge},
		"more members than anyone keeps": {sse(manyMembers(maxUnnamed+1), finish, usageChunk),
			ErrNotAssembled},
		"more choices than anyone asked for": {sse(manyChoices(maxItems + 1)), ErrNotAssembled},
	} {
		t.Run(name, func(t *testing.T) {
			if _, body, err := whole("/v1/chat/completions", c.stream, nil); !errors.Is(
				err, c.want) {
				t.Errorf("got %.200s, %v; want %v", body, err, c.want)
			}
		})
	}
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"x%d":1`, i)
	}
	return "{" + b.String()[1:] + "}"
}

func manyChoices(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,{"index":%d}`, i)
	}
	return chatChunk(b.String()[1:])
}

func TestErrorWithinAStreamHasItsStatus(t *testing.T) {
	for _, event := range []string{
		`{"error":{"message":"too long","type":"BadRequestError","code":400}}`,
		`{"object":"error","message":"too long","type":"BadRequestError","code":400}`,
	} {
		status, body, err := whole("/v1/chat/completions",
			sse(chatChunk(`{"index":0,"delta":{"content":"a"}}`), event), nil)
		if status != 400 || body != event || err != nil {
			t.Errorf("got %d, %s, %v; want 400 and the event", status, body, err)
		}
	}
}

func TestTokensAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		chunks []string
		first  int
		more   []int
	}{
		"a chunk is a token": {[]string{
			// announces, brings nothing
			chatChunk(`{"index":0,"delta":{"role":"assistant","content":""}}`),
			chatChunk(`{"index":0,"delta":{"content":"a"}}`),
			chatChunk(`{"index":0,"delta":{"reasoning_content":"b"}}`),
			chatChunk(`{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t"}]}}`),
			chatChunk(`{"index":0,"delta":{},"finish_reason":"stop"}`),
			usageChunk,
		}, 1, []int{1, 1}},
		"tokens of the first choice count": {[]string{
			chatChunk(`{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"a"}}`),
			chatChunk(`{"index":1,"delta":{"content":"a"}}`),
			chatChunk(`{"index":0,"delta":{"content":"a"}}`),
		}, 1, []int{1}},
		"usage as it goes": {[]string{
			strings.Replace(chatChunk(`{"index":0,"delta":{"content":"a"}}`), `]}`,
				`],"usage":{"completion_tokens":1}}`, 1),
			strings.Replace(chatChunk(`{"index":0,"delta":{"content":"abc"}}`), `]}`,
				`],"usage":{"completion_tokens":5}}`, 1),
			strings.Replace(chatChunk(`{"index":0,"delta":{"content":"a"}}`), `]}`,
				`],"usage":{"completion_tokens":7}}`, 1),
		}, 1, []int{4, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			first, more := 0, []int(nil)
			whole("/v1/chat/completions", sse(c.chunks...), &Watch{
				First: func() { first++ },
				More:  func(n int, _ time.Duration) { more = append(more, n) },
			})
			if first != c.first || !cmp.Equal(more, c.more) {
				t.Errorf("first %d, more %v; want %d, %v", first, more, c.first, c.more)
			}
		})
	}
}

// However an answer is cut into chunks, it comes together again.
func TestAnswersCutAnywhereAreAssembled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type call struct{ ID, Name, Arguments string }
		var events []string
		var choices []any
		pieces := [][]string{} // per choice, of deltas
		for i := range rapid.IntRange(1, 3).Draw(t, "choices") {
			content := rapid.String().Draw(t, "content")
			calls := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) call {
				return call{rapid.StringN(1, 9, -1).Draw(t, "id"), rapid.StringN(1, 9, -1).Draw(
					t, "name"), rapid.String().Draw(t, "arguments")}
			}), 0, 2).Draw(t, "calls")
			deltas := []string{`{"role":"assistant","content":""}`}
			for _, piece := range cut(t, content) {
				deltas = append(deltas, fmt.Sprintf(`{"content":%s}`, quote(piece)))
			}
			message := map[string]any{"role": "assistant", "content": content, "refusal": nil}
			var whole []any
			for k, c := range calls {
				for n, piece := range append([]string{""}, cut(t, c.Arguments)...) {
					head := ""
					if n == 0 {
						head = fmt.Sprintf(`"id":%s,"type":"function",`, quote(c.ID))
						deltas = append(deltas, fmt.Sprintf(
							`{"tool_calls":[{"index":%d,%s"function":{"name":%s,"arguments":""}}]}`,
							k, head, quote(c.Name)))
					} else {
						deltas = append(deltas, fmt.Sprintf(
							`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, k, quote(
								piece)))
					}
				}
				whole = append(whole, map[string]any{
					"id": c.ID, "type": "function", "function": map[string]any{
						"name": c.Name, "arguments": c.Arguments}})
			}
			if whole != nil {
				message["tool_calls"] = whole
				if content == "" {
					message["content"] = nil
				}
			}
			pieces = append(pieces, deltas)
			choices = append(choices, map[string]any{"index": float64(i), "message": message,
				"logprobs": nil, "finish_reason": "stop"})
		}
		for left := true; left; {
			left = false
			for i := range pieces {
				if len(pieces[i]) > 0 && rapid.Bool().Draw(t, "this one next") {
					events = append(events, chatChunk(
						fmt.Sprintf(
							`{"index":%d,"delta":%s,"finish_reason":null}`, i, pieces[i][0])))
					pieces[i] = pieces[i][1:]
				}
				left = left || len(pieces[i]) > 0
			}
		}
		for i := range choices {
			events = append(events, chatChunk(
				fmt.Sprintf(`{"index":%d,"delta":{},"finish_reason":"stop"}`, i)))
		}
		_, body, err := whole("/v1/chat/completions", sse(append(events, usageChunk)...), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(choices, got["choices"]); diff != "" {
			t.Fatalf("events %s\n%s", events, diff)
		}
	})
}

func cut(t *rapid.T, s string) (pieces []string) {
	runes := []rune(s)
	for len(runes) > 0 {
		n := rapid.IntRange(1, len(runes)).Draw(t, "runes")
		pieces, runes = append(pieces, string(runes[:n])), runes[n:]
	}
	return pieces
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// Whatever a server sends, the answer is a whole JSON object or there is none.
func FuzzStream(f *testing.F) {
	for _, path := range []string{"/v1/chat/completions", "/v1/completions", "/v1/responses"} {
		f.Add(
			path, sse(
				chatChunk(
					`{"index":0,"delta":{"role":"assistant","content":"a","tool_calls":[{"index":0,"function":{"arguments":"x"}}]},"finish_reason":"stop","logprobs":{"content":[1]}}`), usageChunk))
		f.Add(
			path, sse(
				`{"choices":[{"index":0,"text":"a","finish_reason":"x","":[]}],"usage":{},"":1}`))
		f.Add(path, "data: {\"type\":\"response.completed\",\"response\":{\"a\":1}}\n\n")
		f.Add(path, sse(`{"error":{"code":500}}`))
	}
	f.Fuzz(func(t *testing.T, path, stream string) {
		status, body, err := whole(path, stream, nil)
		if err == nil && !batchfile.IsObject([]byte(body)) {
			t.Fatalf("status %d, %q of %q", status, body, stream)
		}
	})
}

func BenchmarkStream(b *testing.B) {
	var chunks []string
	for range 200 {
		chunks = append(chunks, chatChunk(
			`{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}`))
	}
	chunks = append(chunks, chatChunk(
		`{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}`), usageChunk)
	stream := sse(chunks...)
	b.SetBytes(int64(len(stream)))
	for b.Loop() {
		if _, _, err := whole("/v1/chat/completions", stream, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// Nothing broke off: the runner said that this was all.
func TestStreamThatEndsWithoutAFinishReasonIsNotAssembled(t *testing.T) {
	begun := sseChunk(`{"index":0,"delta":{"content":"hi"}}`)
	for name, c := range map[string]struct {
		stream string
		want   error
	}{
		"ended":      {begun + "data: [DONE]\n\n", ErrNotAssembled},
		"empty":      {"data: [DONE]\n\n", ErrNotAssembled},
		"broken off": {begun, errIncomplete},
	} {
		_, _, err := whole(path, c.stream, nil)
		broke := errors.Is(err, io.ErrUnexpectedEOF)
		if !errors.Is(err, c.want) || broke != (c.want == errIncomplete) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}
