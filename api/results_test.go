package api

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/disk"
)

// work holds the chunks of a batch with open journals, as a dispatcher does.
type work struct {
	*service
	id       string
	owner    store.Owner
	chunks   []store.Chunk
	journals []store.Journal
}

// run creates a batch in progress with numbers of lines and chunks, all claimed.
func (s *service) run(lines, chunks int) *work {
	s.t.Helper()
	content := ""
	for i := range lines {
		content += line(fmt.Sprint("line-", i))
	}
	w := &work{service: s, id: s.create(content)["id"].(string)}
	s.change(w.id, func(b *store.Batch) {
		b.State, b.InProgressAt = store.InProgress, s.clock.now()
	})
	ctx := s.t.Context()
	var layout []store.Chunk
	size := (lines + chunks - 1) / chunks
	for i := range chunks {
		first := i * size
		layout = append(layout, store.Chunk{
			ChunkID: store.ChunkID{Batch: w.id, Index: i}, Model: "m", First: first,
			Count: min(size, lines-first),
		})
	}
	var err error
	if w.owner, err = s.meta.Register(ctx, "node", 24*time.Hour); err != nil {
		s.t.Fatal(err)
	}
	if err := s.meta.AddChunks(ctx, w.id, layout); err != nil {
		s.t.Fatal(err)
	}
	if w.chunks, err = s.meta.ClaimChunks(ctx, w.owner, w.id, "m", chunks, nil); err != nil ||
		len(w.chunks) != chunks {
		s.t.Fatal(len(w.chunks), err)
	}
	for _, c := range w.chunks {
		j, err := s.server.deps.Journals.(*disk.Journals).Open(ctx, c.ChunkID, c.Epoch,
			func(store.Record) {},
			func(store.Commit) {})
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { j.Close(context.Background()) })
		w.journals = append(w.journals, j)
	}
	return w
}

// result returns the result of a line, which fails if its number ends in 7.
func result(line int) (r store.Record) {
	r = store.Record{Line: uint32(line), Attempts: 1, Failed: line%10 == 7}
	answer := batchfile.Result{ID: "batch_req_1", CustomID: []byte(fmt.Sprintf(`"line-%d"`, line)),
		Status: 200, Body: []byte(`{}`)}
	if r.Failed {
		answer.Status = 500
	}
	r.Result = batchfile.AppendResult(nil, answer)
	return r
}

// finish journals the results of lines.
func (w *work) finish(lines ...int) {
	w.t.Helper()
	for _, line := range lines {
		i := slices.IndexFunc(w.chunks, func(c store.Chunk) bool {
			return c.First <= line && line < c.First+c.Count
		})
		if err := w.journals[i].Append(w.t.Context(), result(line)); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, j := range w.journals {
		if err := j.Flush(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *work) finishChunk(i int) {
	w.t.Helper()
	if err := w.meta.FinishChunks(w.t.Context(), w.owner, w.chunks[i]); err != nil {
		w.t.Fatal(err)
	}
}

// follow reads one page of results and returns the custom_ids and the answer.
func (w *work) follow(after string, limit int) (ids []string, a answer) {
	w.t.Helper()
	a = w.get(fmt.Sprintf("/v1/batches/%s/results?limit=%d&after=%s", w.id, limit, after))
	if a.status != http.StatusOK || a.header.Get("Content-Type") != "application/x-ndjson" {
		w.t.Fatalf("got status %d, %v: %s", a.status, a.header, a.body)
	}
	err := batchfile.ScanResults(strings.NewReader(a.body), func(id string, _ int64) error {
		ids = append(ids, id)
		return nil
	})
	if err != nil {
		w.t.Fatalf("%v: %s", err, a.body)
	}
	return ids, a
}

func TestResultsReportEachLineOnce(t *testing.T) {
	s := newService(t, diskJournals(t))
	const lines = 100
	w := s.run(lines, 7)
	random := rand.New(rand.NewPCG(1, 2))
	todo := random.Perm(lines)
	returned := map[string]int{}
	after, done := "", 0
	page := func(limit int) (more bool) {
		ids, a := w.follow(after, limit)
		if len(ids) > limit {
			t.Errorf("got %d lines, asked for at most %d", len(ids), limit)
		}
		for _, id := range ids {
			returned[id]++
		}
		after = a.header.Get("Tidefill-Next")
		return a.header.Get("Tidefill-More") == "true"
	}
	if ids, a := w.follow("", 10); len(ids) != 0 || a.header.Get("Tidefill-More") != "false" ||
		a.header.Get("Tidefill-Batch-Status") != "in_progress" {
		t.Errorf("got %v and headers %v before any line has ended", ids, a.header)
	}
	for len(todo) > 0 {
		n := min(1+random.IntN(20), len(todo))
		w.finish(todo[:n]...)
		done += n
		todo = todo[n:]
		for page(1 + random.IntN(8)) {
		}
		if len(returned) != done {
			t.Fatalf("got %d lines, want all %d that have ended", len(returned), done)
		}
	}
	for i := range w.chunks {
		w.finishChunk(i)
	}
	if page(10) || len(returned) != lines {
		t.Errorf("got %d lines, want %d", len(returned), lines)
	}
	for id, times := range returned {
		if times != 1 {
			t.Errorf("%s was returned %d times", id, times)
		}
	}
	if end, err := decodeCursor(after, w.id, 7); err != nil ||
		!slices.Equal(end, slices.Repeat(cursor{drained}, 7)) {
		t.Errorf("got cursor %v, %v; want all chunks drained", end, err)
	}
}

func TestResultsAreTheResultFilesLines(t *testing.T) {
	s := newService(t, diskJournals(t))
	w := s.run(20, 1)
	w.finish(3, 17)
	_, a := w.follow("", 100)
	if want := string(result(3).Result) + string(result(17).Result); a.body != want {
		t.Errorf("got %s, want %s", a.body, want)
	}
}

func TestResultsOfEndedBatches(t *testing.T) {
	s := newService(t, diskJournals(t))
	w := s.run(10, 2)
	w.finish(0, 1, 2)
	s.change(w.id, func(b *store.Batch) {
		b.State, b.CancelledAt = store.Cancelled, s.clock.now()
		b.Outputs[0].HasOutput = true
	})
	s.clock.advance(store.JournalRetention)
	if ids, a := w.follow("", 10); len(ids) != 3 ||
		a.header.Get("Tidefill-Batch-Status") != "cancelled" {
		t.Errorf("got %v, %v", ids, a.header)
	}
	s.clock.advance(time.Second)
	b, err := s.meta.Batch(t.Context(), "", w.id)
	if err != nil {
		t.Fatal(err)
	}
	s.get("/v1/batches/"+w.id+"/results").refused(http.StatusGone, "",
		"results_gone", b.Outputs[0].OutputID)

	failed := s.create("{\n")["id"].(string)
	if a := s.get("/v1/batches/" + failed + "/results"); a.status != 200 || a.body != "" {
		t.Errorf("got %d %q for a batch that never ran, want nothing", a.status, a.body)
	}
}

func TestResultsRefusals(t *testing.T) {
	s := newService(t, diskJournals(t))
	w, other := s.run(4, 2), s.run(4, 2)
	_, a := other.follow("", 1)
	path := "/v1/batches/" + w.id + "/results?"
	for _, cursor := range []string{"x", "!", "AAAAAA", a.header.Get("Tidefill-Next"),
		cursor{1, 2, 3}.encode(w.id)} {
		s.get(path+"after="+cursor).refused(http.StatusBadRequest, "after", "invalid_value",
			"Tidefill-Next")
	}
	for _, limit := range []string{"0", "10001", "x"} {
		s.get(path+"limit="+limit).refused(http.StatusBadRequest, "limit", "invalid_value")
	}
}

func TestCursorReturns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		position := rapid.OneOf(rapid.SampledFrom([]int64{unread, drained}), rapid.Int64Range(
			1, 1<<40))
		want := cursor(rapid.SliceOfN(position, 0, 50).Draw(t, "positions"))
		more := rapid.IntRange(0, 3).Draw(t, "chunks beyond")
		got, err := decodeCursor(want.encode("batch_1"), "batch_1", len(want)+more)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(append(slices.Clone(want), make(cursor, more)...), got); diff != "" {
			t.Fatalf("(-want +got): %s", diff)
		}
	})
}

func TestCursorStaysShort(t *testing.T) {
	c := slices.Repeat(cursor{drained}, 5_000)
	for i := 4_000; i < 4_010; i++ {
		c[i] = 1 << 20
	}
	if n := len(c.encode("batch_1")); n > 80 {
		t.Errorf("got %d bytes for 5,000 chunks of which 10 are active", n)
	}
}

func FuzzCursor(f *testing.F) {
	f.Add(cursor{1, drained, drained, unread, 99}.encode("batch_1"))
	f.Add("AAAAAA")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := decodeCursor(text, "batch_1", 5)
		if err == nil && len(c) != 5 {
			t.Fatalf("got %d positions for 5 chunks", len(c))
		}
	})
}

// event is one server-sent event.
type event struct{ name, data string }

// readEvents reads a stream until it ends or stop returns true.
func readEvents(t *testing.T, r *http.Response, stop func(event) bool) {
	t.Helper()
	var e event
	for in := bufio.NewScanner(r.Body); in.Scan(); {
		name, value, _ := strings.Cut(in.Text(), ": ")
		switch name {
		case "event":
			e.name = value
		case "data":
			e.data = value
		case "":
			if e.name != "" && stop(e) {
				return
			}
			e = event{}
		}
	}
}

func (s *service) listen(id string, header ...string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), "GET", s.url+"/v1/batches/"+id+"/events",
		nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		s.t.Fatalf("got %s %v", resp.Status, resp.Header)
	}
	return resp
}

func TestEventsFollowABatchToItsEnd(t *testing.T) {
	s := newService(t)
	id := s.create(line("a") + line("b"))["id"].(string)
	owner, err := s.meta.Register(t.Context(), "node", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	readEvents(t, s.listen(id, "Last-Event-ID", "17"), func(e event) bool {
		o := answer{t: t, body: e.data}.object()
		switch e.name {
		case "state", "done":
			got = append(got, fmt.Sprint(e.name, " ", o["status"]))
			if keys := slices.Sorted(maps.Keys(o)); !slices.Equal(keys, batchKeys) {
				t.Errorf("got keys %v, want those of a batch", keys)
			}
		case "progress":
			counts := o["request_counts"].(map[string]any)
			got = append(got, fmt.Sprint("progress ", counts["completed"]))
		case "reason":
			got = append(got, fmt.Sprint("reason ", o["waiting"], " ", o["reason"]))
		}
		switch len(got) { // each step is visible before the next
		case 2:
			if err := s.meta.PostProgress(t.Context(), owner, map[string]store.ProgressPost{
				id: {Progress: store.Progress{Completed: 1, Waiting: "yielding",
					UpdatedAt: s.clock.now()}}}); err != nil {
				t.Fatal(err)
			}
		case 4:
			s.change(id, func(b *store.Batch) {
				b.State, b.CompletedAt, b.Counts, b.Reason = store.Completed, s.clock.now(),
					store.Counts{Total: 2, Completed: 2}, "why"
			})
		}
		return false
	})
	want := []string{
		"state validating", "progress 0", "progress 1", "reason yielding <nil>",
		"state completed", "progress 2", "reason <nil> why", "done completed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got): %s", diff)
	}
	// A client that reconnects late receives the end.
	var again []string
	readEvents(t, s.listen(id), func(e event) bool { again = append(again, e.name); return false })
	if want := []string{"state", "progress", "reason", "done"}; !slices.Equal(again, want) {
		t.Errorf("got %v afterwards, want %v", again, want)
	}
}

func TestEventsEndWithTheServer(t *testing.T) {
	s := newService(t)
	id := s.create(line("a"))["id"].(string)
	closed := false
	readEvents(t, s.listen(id), func(e event) bool {
		if e.name == "done" {
			t.Error("the stream reports the end of the batch")
		}
		if !closed {
			closed = true
			s.server.CloseStreams()
			s.server.CloseStreams() // may be called again
		}
		return false
	}) // returns when the stream ends
	if a := s.do("HEAD", "/v1/batches/"+id+"/events", nil); a.status != 200 {
		t.Errorf("got %d for HEAD", a.status)
	}
}
