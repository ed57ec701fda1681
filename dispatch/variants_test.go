package dispatch_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/dispatch"
	upstreams "github.com/tidefill/tidefill/dispatch/upstream"
)

// A line is sent in the first form that the runner understands: as a stream with a priority, then
// without what it refuses. Later lines are sent in that form at once.
func TestVariantsOfARequest(t *testing.T) {
	const refusesStream = `{"error":{"message":"stream is not supported"}}`
	const refusesPriority = `{"error":{"message":"priority is not supported"}}`
	for name, c := range map[string]struct {
		// refuse returns the body of a refusal; empty: the runner answers.
		refuse func(stream, priority bool) (message string)
		want   string // requests of two lines, one after the other
	}{
		"nothing": {func(bool, bool) string { return "" },
			"stream+priority, stream+priority"},
		"streams": {func(stream, _ bool) string {
			if stream {
				return refusesStream
			}
			return ""
		}, "stream+priority, priority, priority"},
		"priorities": {func(_, priority bool) string {
			if priority {
				return refusesPriority
			}
			return ""
		}, "stream+priority, stream, stream"},
		"both, streams first": {func(stream, priority bool) string {
			switch {
			case stream:
				return refusesStream
			case priority:
				return refusesPriority
			}
			return ""
		}, "stream+priority, priority, stream, plain, plain"},
		"both, priorities first": {func(stream, priority bool) string {
			switch {
			case priority:
				return refusesPriority
			case stream:
				return refusesStream
			}
			return ""
		}, "stream+priority, stream, plain, plain"},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var got []string
			up := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				stream := strings.Contains(string(body), `"stream":true`)
				priority := strings.Contains(string(body), `"priority":100`)
				form := "plain"
				switch {
				case stream && priority:
					form = "stream+priority"
				case stream:
					form = "stream"
				case priority:
					form = "priority"
				}
				mu.Lock()
				got = append(got, form)
				mu.Unlock()
				if message := c.refuse(stream, priority); message != "" {
					w.WriteHeader(http.StatusBadRequest)
					io.WriteString(w, message)
					return
				}
				if stream {
					w.Header().Set("Content-Type", "text/event-stream")
					fmt.Fprint(w, `data: {"id":"x","object":"chat.completion.chunk","choices":`+
						`[{"index":0,"delta":{"role":"assistant","content":"hi"},`+
						`"finish_reason":"stop"}]}`+"\n\n"+
						`data: {"id":"x","object":"chat.completion.chunk","choices":[],"usage":`+
						`{"prompt_tokens":7,"completion_tokens":1,"total_tokens":8}}`+
						"\n\ndata: [DONE]\n\n")
					return
				}
				io.WriteString(w, okBody)
			}, "m")
			w, watching := newWorld(t), watch()
			w.dispatcher("a", func(cfg *dispatch.Config, d *dispatch.Deps) {
				watching(cfg, d)
				d.Upstreams = []dispatch.Upstream{{URL: up.URL,
					Dialect: dispatch.Dialect{EnginePriority: upstreams.VLLMPriority}}}
			})
			for range 2 {
				if done := w.awaitEnd(w.submit(chatLines(1, "m"), nil)); done.Counts.Failed > 0 {
					t.Errorf("got %+v", done.Counts)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(c.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}
