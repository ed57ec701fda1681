package dispatch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// short gives a dispatcher little memory.
func short(c *dispatch.Config, _ *dispatch.Deps) { c.Memory = 3 << 20 }

func TestLargeAnswersAreUnchangedInTheOutput(t *testing.T) {
	answers := map[string]string{}
	for i, size := range []int{100, 20_000, 200_000, 2_000_000, 5_000_000} {
		answers[fmt.Sprintf("say line-%d\"", i)] = "{\n\t\"choices\":[]," +
			" \"text\": \"" + strings.Repeat("é",
			size/2) + "\",\r\n \"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n"
	}
	up := serve(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		for prompt, answer := range answers {
			if strings.Contains(string(raw), prompt) {
				io.WriteString(w, answer)
			}
		}
	}, "m")
	w := newWorld(t)
	w.dispatcher("a", short, up.URL)
	id := w.submit(chatLines(len(answers), "m"), nil)
	b := w.awaitEnd(id)
	if b.State != store.Completed || b.Counts.Completed != len(answers) ||
		b.Usage.TotalTokens != int64(3*len(answers)) {
		t.Errorf("got %s, %+v, %+v", b.State, b.Counts, b.Usage)
	}
	output, _ := w.results(id)
	for i, r := range output {
		want := strings.TrimSpace(strings.NewReplacer("\r", " ", "\n", " ").Replace(
			answers[fmt.Sprintf("say line-%d\"", i)]))
		if r.CustomID != fmt.Sprintf("line-%d", i) || string(r.Response.Body) != want ||
			!strings.HasPrefix(r.Response.RequestID, "up-") {
			t.Errorf("line %d: %s has %d bytes, want %d", i, r.CustomID, len(r.Response.Body),
				len(want))
		}
	}
}

func TestAnswersOverTheLimitFail(t *testing.T) {
	up := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if raw, _ := io.ReadAll(r.Body); strings.Contains(string(raw), "say error") {
			w.WriteHeader(400)
		}
		fmt.Fprintf(w, `{"choices":[],"data":[],"text":%q}`, strings.Repeat("x", 300_000))
	}, "m")
	w := newWorld(t)
	w.dispatcher("a", func(c *dispatch.Config, _ *dispatch.Deps) {
		c.MaxAnswerBytes, c.Retry.Attempts = 200_000, 1
	}, up.URL)
	embedding := `{"custom_id":"embedding","method":"POST","url":"/v1/embeddings","body":{"model":"m","input":"x"}}`
	id := w.submit([]string{chatLine("chat", "m"), chatLine("error", "m"), embedding}, nil)
	w.awaitEnd(id)
	output, failed := w.results(id)
	if len(output) != 1 || output[0].CustomID != "embedding" ||
		len(output[0].Response.Body) < 300_000 {
		t.Errorf("the output has %d lines, want that of the embedding, whose bound is another",
			len(output))
	}
	for _, r := range failed {
		switch {
		case r.CustomID == "chat" && (r.Error == nil || r.Error.Code != "invalid_upstream_answer" ||
			!strings.Contains(r.Error.Message, "200000")):
			t.Errorf("chat: got %+v, want an error that names the bound", r)
		case r.CustomID == "error" && (r.Response == nil || len(r.Response.Body) > 70_000 ||
			!strings.Contains(string(r.Response.Body), "cut by tidefill")):
			t.Errorf("error: got %d bytes, want an answer that was cut, and says so",
				len(r.Response.Body))
		}
	}
}

func TestLargeLinesAreSentLikeSmallOnes(t *testing.T) {
	for name, change := range map[string]func(*dispatch.Config,
		*dispatch.Deps){"plain": short, "streamed": watch()} {
		t.Run(name, func(t *testing.T) {
			up := serve(t, nil, "m")
			w := newWorld(t)
			w.dispatcher("a", change, up.URL)
			var lines []string
			for i, size := range []int{10, 100_000, 300_000, 1_500_000} {
				lines = append(lines, fmt.Sprintf(
					`{"custom_id":"%d","method":"POST","url":"/v1/chat/completions","body":{ "model":"m" ,"temperature":1,"messages":[{"role":"user","content":%q}]}}`, i, strings.Repeat("word ", size/5)))
			}
			defaults, overrides := map[string]jsonRaw{"top_p": jsonRaw("0.5")}, map[string]jsonRaw{
				"temperature": jsonRaw("0")}
			id := w.submit(lines, func(b *store.Batch) {
				b.Parameters = &store.Parameters{
					Defaults:  []store.ParameterRule{{Parameters: defaults}},
					Overrides: []store.ParameterRule{{Parameters: overrides}},
				}
			})
			if b := w.awaitEnd(id); b.Counts.Completed != len(lines) {
				t.Errorf("got %+v", b.Counts)
			}
			if name == "streamed" {
				overrides["stream"], overrides["stream_options"] = jsonRaw("true"), jsonRaw(
					`{"include_usage":true}`)
			}
			for i, line := range lines {
				var parsed struct{ Body json.RawMessage }
				if err := json.Unmarshal([]byte(line), &parsed); err != nil {
					t.Fatal(err)
				}
				want, err := batchfile.EditBody(nil, parsed.Body, defaults, overrides)
				if err != nil {
					t.Fatal(err)
				}
				if up.bodies[string(want)] != 1 {
					t.Errorf("line %d did not arrive as it should have", i)
				}
			}
		})
	}
}

// heldJournals reports no commits until release is called.
type heldJournals struct {
	dispatch.Journals
	mu   sync.Mutex
	open bool
	held []func()
}

func (d *heldJournals) Open(
	ctx context.Context, id store.ChunkID, epoch int64, replay func(store.Record),
	committed func(store.Commit),
) (store.Journal, error) {
	return d.Journals.Open(ctx, id, epoch, replay, func(c store.Commit) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.open {
			committed(c)
		} else {
			d.held = append(d.held, func() { committed(c) })
		}
	})
}

func (d *heldJournals) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open = true
	for _, release := range d.held {
		release()
	}
}

func TestNoLineStartsWhileResultsFillTheirMemory(t *testing.T) {
	// What 1 MiB holds, and what was in flight when it was full. The answers in flight fit into the
	// memory of answers: one that does not would go to a file and need no memory of results.
	for status, most := range map[int]int{200: 49 + 16, 400: 50 + 16 + 16} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			up := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(status)
				fmt.Fprintf(w, `{"choices":[],"text":%q}`, bytes.Repeat([]byte("x"), 21_000))
			}, "m")
			w := newWorld(t)
			held := &heldJournals{Journals: w.disk.Journals()}
			w.dispatcher("a", func(c *dispatch.Config, d *dispatch.Deps) {
				short(c, d)
				d.Journals = held
			}, up.URL)
			id := w.submit(chatLines(300, "m"), nil)
			w.await(id, "held up", func(store.Batch) bool {
				p := w.progress(id)
				return status == 200 && up.requests() >= most && p.InFlight == 16 ||
					p.Waiting == plan.StoreDown.Text()
			})
			if n := up.requests(); n > most {
				t.Errorf("%d lines were sent while no result could be kept, want %d at most", n,
					most)
			}
			held.release()
			if b := w.awaitEnd(id); b.Counts.Completed+b.Counts.Failed != 300 ||
				up.requests() != 300 {
				t.Errorf("got %+v with %d requests", b.Counts, up.requests())
			}
		})
	}
}

// fullSpool has no space for temporary files while full is set.
type fullSpool struct {
	dispatch.Spool
	full *atomic.Bool
}

func (s fullSpool) Temporary(ctx context.Context) (store.Temporary, error) {
	f, err := s.Spool.Temporary(ctx)
	return fullFile{f, s.full}, err
}

func (s fullSpool) TemporarySpace() (int64, error) {
	if s.full.Load() {
		return 0, nil
	}
	return s.Spool.TemporarySpace()
}

type fullFile struct {
	store.Temporary
	full *atomic.Bool
}

func (f fullFile) Write(b []byte) (int, error) {
	if f.full.Load() {
		return 0, store.ErrNoSpace
	}
	return f.Temporary.Write(b)
}

func TestNoAnswerIsComputedWithoutSpaceForIt(t *testing.T) {
	var full atomic.Bool
	full.Store(true)
	up := serve(t, func(w http.ResponseWriter, r *http.Request) {
		size := 100
		if raw, _ := io.ReadAll(r.Body); strings.Contains(string(raw), "say large") {
			size = 1_500_000
		}
		fmt.Fprintf(w, `{"choices":[],"text":%q}`, strings.Repeat("x", size))
	}, "m")
	w := newWorld(t)
	d, _ := w.dispatcher("a", func(_ *dispatch.Config, d *dispatch.Deps) {
		d.Spool = fullSpool{w.disk, &full}
	}, up.URL)
	const n = 40
	var lines []string
	for i := range n {
		lines = append(lines, chatLine(fmt.Sprintf("large-%d", i), "m"))
	}
	large := w.submit(lines, nil)
	w.await(large, "stopped", func(store.Batch) bool {
		p := w.progress(large)
		return p.Waiting == plan.DiskFull.Text() && p.InFlight == 0
	})
	if got := d.AnswersStopped(); got != plan.DiskFull {
		t.Errorf("answers are stopped by %q, want %q", got, plan.DiskFull)
	}
	stopped := up.requests()
	if stopped > 16 { // as many as are in flight at a time
		t.Errorf("%d lines were sent, and none of their answers could be kept", stopped)
	}
	small := w.submit(chatLines(100, "m"), nil)
	if b := w.awaitEnd(small); b.Counts.Completed != 100 {
		t.Errorf("of the lines with small answers: %+v", b.Counts)
	}
	if sent := up.requests() - 100; sent != stopped {
		t.Errorf("%d lines were sent while no answer could be kept", sent-stopped)
	}
	full.Store(false)
	if b := w.awaitEnd(large); b.Counts.Completed != n || up.requests() != 100+n+stopped {
		t.Errorf("got %+v with %d requests, want %d", b.Counts, up.requests(), 100+n+stopped)
	}
	if got := d.AnswersStopped(); got != plan.Flowing {
		t.Errorf("in the end answers are stopped by %q", got)
	}
}
