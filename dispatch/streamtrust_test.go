package dispatch_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/flowcontrol"
)

// Streams that arrive in bunches, and events with several tokens, are recognised: the runner gets
// no more streams, and a warning says why.
func TestStreamsThatCannotBeTrusted(t *testing.T) {
	const tokens = 96
	for name, c := range map[string]struct {
		perFlush, perEvent int // events that are sent together, tokens in an event
		want               string
	}{
		"one by one":        {1, 1, ""},
		"a buffering proxy": {8, 1, "streams_buffered"},
		"a token interval":  {1, 4, "streams_in_intervals"},
	} {
		t.Run(name, func(t *testing.T) {
			up := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				chunk := func(rest string) {
					fmt.Fprintf(w, `data: {"id":"c","object":"chat.completion.chunk","created":1,`+
						`"model":"m",%s}`+"\n\n", rest)
				}
				sent := 0
				for i := 0; i < tokens; i += c.perEvent {
					chunk(`"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]`)
					if sent++; sent%c.perFlush == 0 {
						w.(http.Flusher).Flush()
						time.Sleep(time.Duration(c.perFlush) * 6 * time.Millisecond)
					}
				}
				chunk(`"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]`)
				chunk(fmt.Sprintf(`"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":%d,`+
					`"total_tokens":%d}`, tokens, tokens+3))
				fmt.Fprint(w, "data: [DONE]\n\n")
			}, "m")
			w := newWorld(t)
			d, _ := w.dispatcher("a", func(_ *dispatch.Config, deps *dispatch.Deps) {
				deps.Flow = flowcontrol.DefaultConfig()
				deps.Flow.Policy = "watching"
			}, up.URL)
			if b := w.awaitEnd(w.submit(chatLines(6, "m"), nil)); b.Counts.Completed != 6 {
				t.Fatalf("got %+v, want all lines completed", b.Counts)
			}
			codes := func() (codes []string) {
				for _, p := range d.Pools() {
					for _, warning := range p.Warnings {
						codes = append(codes, warning.Code)
					}
				}
				return codes
			}
			var want []string
			if c.want != "" {
				want = []string{c.want}
			}
			for deadline := time.Now().Add(10 * time.Second); !slices.Equal(codes(), want) &&
				time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			}
			if got := codes(); !slices.Equal(got, want) {
				t.Errorf("got warnings %q, want %q", got, want)
			}
		})
	}
}
