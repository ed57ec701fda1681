package api

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// An operator sees what has happened to a batch and who did it, and nothing that its user wrote.
func TestDetails(t *testing.T) {
	s := newService(t)
	id := s.in(store.InProgress)
	for _, action := range []string{"pause", "pause", "resume"} {
		s.clock.advance(60e9)
		s.post("/v1/batches/"+id+"/"+action, "").ok()
	}
	s.change(id, func(b *store.Batch) {
		b.Errors = []batchfile.Fault{{Code: "invalid_json", Line: 2, Message: "secret"},
			{Code: "invalid_json", Line: 5},
			{Code: "model_not_found", Line: 4, Message: "no m"}}
		b.Metadata = map[string]string{"secret": "secret"}
		b.Failures = []store.Failure{{Count: 1, Status: 400, Sample: "secret"}}
	})
	d, err := s.server.Details(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var changes []string
	for _, c := range d.Batch.Changes {
		changes = append(changes, c.What)
	}
	if diff := cmp.Diff([]string{"paused", "resumed"}, changes); diff != "" {
		t.Errorf("the changes are (-want +got)\n%s", diff)
	}
	want := []FaultCount{{"invalid_json", 2, 2, ""}, {"model_not_found", 1, 4, "no m"}}
	if diff := cmp.Diff(want, d.Faults); diff != "" {
		t.Errorf("the faults are (-want +got)\n%s", diff)
	}
	listed, err := s.server.Summaries(t.Context(), []string{id})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, listed[0].Faults); diff != "" {
		t.Errorf("the faults in a list are (-want +got)\n%s", diff)
	}
	if text := fmt.Sprintf("%+v", d); strings.Contains(text, "secret") {
		t.Errorf("the details have what the user wrote: %s", text)
	}
	if _, err := s.server.Details(t.Context(), "batch_gone"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a batch that does not exist: %v", err)
	}
}

// A batch remembers the last changes only.
func TestChangesAreBounded(t *testing.T) {
	s := newService(t)
	id := s.in(store.InProgress)
	for range store.MaxChanges {
		s.post("/v1/batches/"+id+"/pause", "").ok()
		s.post("/v1/batches/"+id+"/resume", "").ok()
	}
	d, err := s.server.Details(t.Context(), id)
	if n := len(d.Batch.Changes); err != nil || n != store.MaxChanges {
		t.Errorf("%d changes, %v", n, err)
	}
}

func TestResultHead(t *testing.T) {
	for _, test := range []struct {
		result batchfile.Result
		want   string
	}{
		{batchfile.Result{ID: "r", CustomID: []byte(`"a\u00e9"`), Status: 200, RequestID: "q",
			Body: []byte(`{"custom_id":"x","status_code":500}`)}, "aé 200 "},
		{batchfile.Result{ID: "r", CustomID: []byte(`"a"`), ErrorCode: "timeout",
			ErrorMessage: "m"}, "a 0 timeout"},
		{batchfile.Result{ID: "r", CustomID: []byte(`"code"`), Status: 400, RequestID: "code",
			Body: []byte(`"code"`)}, "code 400 "},
	} {
		id, status, code := resultHead(batchfile.AppendResult(nil, test.result))
		if got := fmt.Sprint(id, " ", status, " ", code); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
	if id, status, code := resultHead(nil); id+code != "" || status != 0 {
		t.Errorf("of nothing: %q %d %q", id, status, code)
	}
}

// An operator follows the lines that have ended, each once, from some of the latest on.
func TestEndedLines(t *testing.T) {
	s := newService(t, diskJournals(t))
	w := s.run(40, 4)
	w.finish(0, 7, 12, 21, 31)
	for i := range 3 {
		w.finishChunk(i)
	}
	read := func(after string, limit int) (ids []string, next string) {
		t.Helper()
		lines, next, err := s.server.EndedLines(t.Context(), w.id, after, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			ids = append(ids, fmt.Sprintf("%s %d", line.CustomID, line.Status))
		}
		return ids, next
	}
	ids, next := read("", 10) // the first chunk is not among the last done ones
	if diff := cmp.Diff([]string{"line-12 200", "line-21 200", "line-31 200"}, ids); diff != "" {
		t.Errorf("at first (-want +got)\n%s", diff)
	}
	w.finish(37, 38)
	ids, next = read(next, 1)
	if diff := cmp.Diff([]string{"line-38 200"}, ids); diff != "" {
		t.Errorf("then (-want +got)\n%s", diff)
	}
	if ids, _ = read(next, 10); len(ids) != 0 {
		t.Errorf("%v again", ids)
	}
	if _, _, err := s.server.EndedLines(t.Context(), w.id, "?", 1); !errors.Is(err, ErrBadCursor) {
		t.Errorf("a position of nothing: %v", err)
	}
}

func TestEndedLineWhoseAnswerFailsTheCheck(t *testing.T) {
	row := batchfile.AppendResult(nil, batchfile.Result{ID: "r", CustomID: []byte(`"a"`),
		Status: 200, Body: []byte("{}"), ErrorCode: "check_failed", ErrorMessage: "why"})
	got := endedLine(store.Record{Failed: true, Attempts: 2, Result: row})
	want := EndedLine{CustomID: "a", Line: 1, Failed: true, Status: 200, Code: "check_failed",
		Attempts: 2}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
