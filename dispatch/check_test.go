package dispatch_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// checked gives a batch a check, with so many attempts.
func checked(rules store.AnswerRules, attempts int) func(*store.Batch) {
	return func(b *store.Batch) {
		b.Options.CheckAttempts = attempts
		b.Parameters = &store.Parameters{Check: &rules}
	}
}

// contentOf is the answer of a chat completion with a text and the usage 7 + 3.
func contentOf(text string) string {
	return strings.Replace(okBody, `"content":"hi"`, fmt.Sprintf(`"content":%q`, text), 1)
}

// conversation is the body of a chat completion.
type conversation struct {
	Messages []struct{ Role, Content string }
	Stream   bool
}

func TestAnswersThatFailTheCheckAreAskedForAgain(t *testing.T) {
	for name, stream := range map[string]func(*dispatch.Config,
		*dispatch.Deps){"plain": nil, "streamed": watch(), "edited": nil} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var turns [][]string
			up := serve(t, func(w http.ResponseWriter, r *http.Request) {
				var c conversation
				if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
					t.Error(err)
				}
				var said []string
				for _, m := range c.Messages {
					said = append(said, m.Role+": "+m.Content)
				}
				first := c.Messages[0].Content
				mu.Lock()
				turns = append(turns, said)
				mu.Unlock()
				switch {
				case c.Stream:
					http.Error(w, `{"error":{"message":"no stream here"}}`, 400)
				case first == "say refusing" && len(c.Messages) > 1:
					http.Error(w, `{"error":{"message":"too long"}}`, 400)
				case first == "say never", first == "say refusing", len(c.Messages) == 1:
					io.WriteString(w, contentOf("sure: secret-prose"))
				default:
					io.WriteString(w, contentOf(`{"n":1}`))
				}
			}, "m")
			var log bytes.Buffer
			w := newWorld(t)
			_, stop := w.dispatcher("a", func(c *dispatch.Config, d *dispatch.Deps) {
				if stream != nil {
					stream(c, d)
				}
				d.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{
					Level: slog.LevelDebug}))
			}, up.URL)
			id := w.submit([]string{chatLine("once", "m"), chatLine("never", "m"),
				chatLine("refusing", "m")}, func(b *store.Batch) {
				checked(store.AnswerRules{
					Schema: json.RawMessage(`{"type":"object","required":["n"]}`)}, 2)(b)
				if name == "edited" {
					b.Parameters.Defaults = []store.ParameterRule{{
						Parameters: map[string]json.RawMessage{"n": json.RawMessage("1")}}}
				}
			})
			b := w.awaitEnd(id)
			output, errs := w.results(id)
			if len(output) != 1 || output[0].CustomID != "once" ||
				!strings.Contains(string(output[0].Response.Body), `{\"n\":1}`) {
				t.Errorf("the output is %+v", output)
			}
			for _, r := range errs {
				if r.Error == nil || r.Error.Code != "check_failed" || !strings.HasPrefix(
					r.Error.Message, "json_schema: the text is not JSON") || r.Response == nil ||
					r.Response.StatusCode != 200 || !strings.Contains(string(r.Response.Body),
					"secret-prose") {
					t.Errorf("the error of %s is %+v, %+v", r.CustomID, r.Error, r.Response)
				}
			}
			// Each line has two answers of 10 tokens.
			if b.Usage.TotalTokens != 60 || b.Counts.Failed != 2 || b.Attempts != int64(
				up.requests()) {
				t.Errorf("got %+v, %+v and %d attempts; the upstream saw %d", b.Usage, b.Counts,
					b.Attempts, up.requests())
			}
			want := store.Failure{Count: 2, Status: 200, Code: "check_failed",
				Sample: "json_schema: the text is not JSON; the fault is at byte 1"}
			if len(b.Failures) > 0 {
				b.Failures[0].Runner = ""
			}
			if len(b.Failures) != 1 || b.Failures[0] != want {
				t.Errorf("the causes are %+v, want %+v", b.Failures, want)
			}
			asked := slices.IndexFunc(turns, func(said []string) bool {
				return len(said) == 3 && said[0] == "user: say once"
			})
			if asked < 0 || turns[asked][1] != "assistant: sure: secret-prose" ||
				!strings.HasPrefix(turns[asked][2], "user: Your answer was not accepted. "+
					"json_schema: the text is not JSON") {
				t.Errorf("the upstream was asked %q", turns)
			}
			stop()
			if strings.Contains(log.String(), "secret-prose") {
				t.Errorf("the log contains an answer: %s", log.String())
			}
		})
	}
}

// Completions and long lines are asked again without the fault.
func TestLinesThatCannotRepeatTheAnswer(t *testing.T) {
	var up *upstream
	up = serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		up.mu.Lock()
		again := up.bodies[string(body)] > 1
		up.mu.Unlock()
		reason := "length"
		if again {
			reason = "stop"
		}
		fmt.Fprintf(w, `{"choices":[{"message":{"content":"x"},"text":"x","finish_reason":%q}]}`,
			reason)
	}, "m")
	w := newWorld(t)
	w.dispatcher("a", nil, up.URL)
	long := strings.Replace(chatLine("long", "m"), "say long", strings.Repeat("x", 300<<10), 1)
	completion := `{"custom_id":"c","method":"POST","url":"/v1/completions","body":` +
		`{"model":"m","prompt":"p"}}`
	for _, line := range []string{long, completion} {
		id := w.submit([]string{line},
			checked(store.AnswerRules{FinishReason: []string{"stop"}}, 3))
		b := w.awaitEnd(id)
		w.results(id)
		if b.Counts.Completed != 1 || b.Attempts != 2 {
			t.Errorf("got %+v with %d attempts, want 1 line with 2", b.Counts, b.Attempts)
		}
	}
}

// Answers in files are checked too. Those that are too large fail.
func TestLargeAnswersAreChecked(t *testing.T) {
	const fit = 4 // more than fit into memory together
	var asked events
	up := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "say large") {
			io.WriteString(w, contentOf(strings.Repeat("x", 2<<20)))
			return
		}
		asked.add()
		asked.await(t, fit)
		io.WriteString(w, contentOf(strings.Repeat("x", 900<<10)))
	}, "m")
	w := newWorld(t)
	w.dispatcher("a", func(c *dispatch.Config, _ *dispatch.Deps) { c.Memory = 3 << 20 }, up.URL)
	id := w.submit(append(chatLines(fit, "m"), chatLine("large", "m")),
		checked(store.AnswerRules{Pattern: "^x+$"}, 1))
	w.awaitEnd(id)
	output, errs := w.results(id)
	if len(output) != fit {
		t.Errorf("the output has %d lines, want those of the %d answers that fit", len(output), fit)
	}
	if len(errs) != 1 || errs[0].Error == nil || !strings.Contains(errs[0].Error.Message,
		"too large to be checked") || len(errs[0].Response.Body) > 128<<10 {
		t.Errorf("got %d errors", len(errs))
	}
}

// A runner whose answers fail all checks is not failing: batches without one go on.
func TestRunnersAreNotBlamedForChecks(t *testing.T) {
	up := serve(t, nil, "m")
	w := newWorld(t)
	d, _ := w.dispatcher("a", nil, up.URL)
	id := w.submit(chatLines(200, "m"), checked(store.AnswerRules{Pattern: "^never$"}, 2))
	b := w.awaitEnd(id)
	if b.Counts.Failed != 200 || b.Attempts != 400 || b.Usage.TotalTokens != 4000 {
		t.Errorf("got %+v, %d attempts, %+v", b.Counts, b.Attempts, b.Usage)
	}
	if failures := d.Failures(); len(failures) > 0 {
		t.Errorf("the runner fails: %+v", failures)
	}
}

// Lines that were answered before a crash keep their usage; others are asked again from the start.
func TestChecksAfterARestart(t *testing.T) {
	var reached events
	block := make(chan struct{})
	up := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var c conversation
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
			t.Error(err)
		}
		if len(c.Messages) == 1 {
			io.WriteString(w, contentOf("no"))
			return
		}
		reached.add()
		select {
		case <-block:
			io.WriteString(w, contentOf("yes"))
		case <-r.Context().Done():
		}
	}, "m")
	w := newWorld(t)
	_, stop := w.dispatcher("a", func(c *dispatch.Config, _ *dispatch.Deps) { c.Drain = 0 },
		up.URL)
	id := w.submit(chatLines(5, "m"), checked(store.AnswerRules{Pattern: "^yes$"}, 2))
	reached.await(t, 5)
	stop()
	close(block)
	w.dispatcher("b", nil, up.URL)
	b := w.awaitEnd(id)
	w.results(id)
	if b.Counts.Completed != 5 || up.requests() != 20 {
		t.Errorf("got %+v after %d requests, want 5 lines after 20", b.Counts, up.requests())
	}
	want := batchfile.Usage{InputTokens: 70, OutputTokens: 30, TotalTokens: 100}
	if *b.Usage != want {
		t.Errorf("the usage is %+v, want %+v", *b.Usage, want)
	}
}
