package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// change updates a batch as a dispatcher does.
func (s *service) change(id string, change func(*store.Batch)) {
	s.t.Helper()
	_, err := store.Modify(s.t.Context(), s.meta, "", id, func(b *store.Batch) error {
		change(b)
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// in creates a batch of one line and sets its state.
func (s *service) in(state store.State) (id string) {
	s.t.Helper()
	id = s.create(line("a"))["id"].(string)
	s.change(id, func(b *store.Batch) {
		b.State = state
		if state == store.Cancelling {
			b.CancellingAt = s.clock.now()
		}
	})
	return id
}

func TestBatchActions(t *testing.T) {
	s := newService(t)
	const refused = "refused"
	for _, test := range []struct {
		action string
		in     store.State
		want   string // the status afterwards
	}{
		{"cancel", store.Validating, "cancelling"},
		{"cancel", store.InProgress, "cancelling"},
		{"cancel", store.Finalizing, "cancelling"},
		{"cancel", store.Cancelling, "cancelling"},
		{"cancel", store.Completed, refused},
		{"cancel", store.Failed, refused},
		{"cancel", store.Expired, refused},
		{"cancel", store.Cancelled, refused},
		{"pause", store.Validating, "validating"},
		{"pause", store.InProgress, "in_progress"},
		{"pause", store.Finalizing, refused},
		{"pause", store.Cancelling, refused},
		{"pause", store.Completed, refused},
		{"resume", store.Validating, "validating"},
		{"resume", store.InProgress, "in_progress"},
		{"resume", store.Finalizing, "finalizing"},
		{"resume", store.Cancelling, "cancelling"},
		{"resume", store.Expired, refused},
		{"retry", store.InProgress, refused},
	} {
		t.Run(test.action+" "+string(test.in), func(t *testing.T) {
			s := *s
			s.t = t
			id := s.in(test.in)
			path := "/v1/batches/" + id + "/" + test.action
			answer := s.do("POST", path, nil) // as SDKs do: no body, no content type
			if test.want == refused {
				answer.refused(http.StatusConflict, "", "invalid_batch_status",
					fmt.Sprintf("Cannot %s a batch with status '%s'.", test.action, test.in))
				if answer.header.Get("X-Should-Retry") != "false" {
					t.Error("SDKs would retry this request")
				}
				return
			}
			b := answer.ok()
			paused := b["tidefill"].(map[string]any)["paused"]
			if b["status"] != test.want || paused != (test.action == "pause") {
				t.Errorf("got status %v, %v", b["status"], b["tidefill"])
			}
			if (b["cancelling_at"] != nil) != (test.want == "cancelling") {
				t.Errorf("got cancelling_at %v", b["cancelling_at"])
			}
			s.clock.advance(time.Minute)
			if diff := cmp.Diff(b, s.do("POST", path, strings.NewReader(
				"no JSON")).ok()); diff != "" {
				t.Errorf("the second request changed something (-first +second): %s", diff)
			}
		})
	}
	for _, action := range []string{"cancel", "pause", "resume", "retry"} {
		s.do("POST", "/v1/batches/batch_x/"+action, nil).refused(http.StatusNotFound, "id", "",
			"No such Batch object: batch_x")
		s.get("/v1/batches/batch_x/"+action).refused(http.StatusMethodNotAllowed, "",
			"method_not_allowed", "POST")
	}
	s.get("/v1/batches/batch_x").refused(http.StatusNotFound, "id", "",
		"No such Batch object: batch_x")
}

func TestPriorityChanges(t *testing.T) {
	s := newService(t)
	id := s.in(store.InProgress)
	path := "/v1/batches/" + id
	changed := s.post(path, `{"tidefill":{"priority":7}}`).ok()
	if got := changed["tidefill"].(map[string]any)["priority"]; got != 7.0 {
		t.Errorf("the priority is %v, want 7", got)
	}
	b, err := s.meta.Batch(t.Context(), "", id)
	if err != nil || b.Options.Priority != 7 || len(b.Changes) != 1 ||
		b.Changes[0].What != "given the priority 7" {
		t.Errorf("stored are the priority %d, changes %v, %v", b.Options.Priority, b.Changes, err)
	}
	for _, wrong := range []struct{ body, param, code string }{
		{`{}`, "tidefill", "missing_required_parameter"},
		{`{"tidefill":{}}`, "tidefill.priority", "missing_required_parameter"},
		{`{"tidefill":{"priority":101}}`, "tidefill.priority", "invalid_value"},
		{`{"tidefill":{"priority":"high"}}`, "tidefill.priority", "invalid_type"},
		{`{"tidefill":{"priority":1,"deadline":"1h"}}`, "tidefill.deadline", "unknown_parameter"},
		{`{"tidefill":{"priority":1},"metadata":{}}`, "metadata", "unknown_parameter"},
	} {
		s.post(path, wrong.body).refused(http.StatusBadRequest, wrong.param, wrong.code)
	}
	s.change(id, func(b *store.Batch) { b.State, b.CompletedAt = store.Completed, time.Now() })
	s.post(path, `{"tidefill":{"priority":8}}`).refused(http.StatusConflict, "",
		"invalid_batch_status", "priority")
}

func TestCancelEndsPause(t *testing.T) {
	s := newService(t)
	id := s.in(store.InProgress)
	paused := s.do("POST", "/v1/batches/"+id+"/pause", nil).ok()["tidefill"].(map[string]any)
	if paused["paused"] != true || paused["waiting"] != waitingPaused {
		t.Errorf("got %v, want it paused, with the waiting reason", paused)
	}
	s.do("POST", "/v1/batches/"+id+"/cancel", nil).ok()
	b, err := s.meta.Batch(t.Context(), "", id)
	if err != nil {
		t.Fatal(err)
	}
	if b.Paused || b.State != store.Cancelling || b.Ending != store.Cancelled {
		t.Errorf("got paused %v, state %s, ending %s", b.Paused, b.State, b.Ending)
	}
}

func TestDeleteBatch(t *testing.T) {
	s := newService(t, diskJournals(t))
	id := s.create(line("a"))["id"].(string)
	path := "/v1/batches/" + id
	live := s.do("DELETE", path, nil)
	live.refused(http.StatusConflict, "", "invalid_batch_status",
		"Cannot delete a batch with status 'validating'.")
	if live.header.Get("X-Should-Retry") != "false" {
		t.Error("SDKs would retry this request")
	}
	s.change(id, func(b *store.Batch) { b.State = store.Completed })
	want := map[string]any{"id": id, "object": "batch", "deleted": true}
	if diff := cmp.Diff(want, s.do("DELETE", path, nil).ok()); diff != "" {
		t.Errorf("(-want +got): %s", diff)
	}
	s.do("DELETE", path, nil).refused(http.StatusNotFound, "id", "")
	s.get(path).refused(http.StatusNotFound, "id", "")
}

func TestBatchesOfOtherTenantsAreNotFound(t *testing.T) {
	keys, err := ParseKeys("red=key-of-red-12345678,blue=key-of-blue-12345678")
	if err != nil {
		t.Fatal(err)
	}
	s := newService(t, func(_ *Config, d *Deps) { d.Keys = keys })
	red := []string{"Authorization", "Bearer key-of-red-12345678", "Content-Type",
		"application/json"}
	blue := []string{"Authorization", "Bearer key-of-blue-12345678", "Content-Type",
		"application/json"}
	form, contentType := encodeForm(t, field{name: "purpose", value: "batch"},
		field{name: "file", filename: "a.jsonl", value: line("a")})
	file := s.do("POST", "/v1/files", form,
		append(slices.Clone(red[:2]), "Content-Type", contentType)...).ok()["id"]
	body := fmt.Sprintf(
		`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`, file)
	s.do("POST", "/v1/batches", strings.NewReader(body), blue...).refused(http.StatusBadRequest,
		"input_file_id", "", "No such File object")
	id := s.do("POST", "/v1/batches", strings.NewReader(body), red...).ok()["id"].(string)
	s.get("/v1/batches/"+id, blue...).refused(http.StatusNotFound, "id", "")
	s.get("/v1/batches/"+id+"/results", blue...).refused(http.StatusNotFound, "id", "")
	s.get("/v1/batches/"+id+"/events", blue...).refused(http.StatusNotFound, "id", "")
	for _, action := range []string{"cancel", "pause", "resume", "retry"} {
		s.do("POST", "/v1/batches/"+id+"/"+action, nil, blue...).refused(http.StatusNotFound, "id",
			"")
	}
	s.do("DELETE", "/v1/batches/"+id, nil, blue...).refused(http.StatusNotFound, "id", "")
	if data := s.get("/v1/batches", blue...).ok()["data"].([]any); len(data) != 0 {
		t.Errorf("the list of another tenant has %v", data)
	}
	s.get("/v1/batches/"+id, red...).ok()
}

func TestListPages(t *testing.T) {
	s := newService(t)
	file := s.upload(line("a"))
	var ids []string // newest first; several of them within one second
	for i := range 7 {
		ids = append([]string{s.createOf(file).ok()["id"].(string)}, ids...)
		if i%3 == 0 {
			s.clock.advance(time.Second)
		}
	}
	walk := func(query string) (walked []string) {
		after := ""
		for {
			page := s.get("/v1/batches?limit=3&" + query + after).ok()
			data := page["data"].([]any)
			for _, b := range data {
				walked = append(walked, b.(map[string]any)["id"].(string))
			}
			if page["object"] != "list" || len(data) > 3 ||
				page["last_id"] != walked[len(walked)-1] ||
				page["first_id"] != data[0].(map[string]any)["id"] {
				t.Fatalf("got page %v", page)
			}
			if page["has_more"] == false {
				return walked
			}
			after = "&after=" + walked[len(walked)-1]
		}
	}
	if diff := cmp.Diff(ids, walk("")); diff != "" {
		t.Errorf("newest first (-want +got): %s", diff)
	}
	slices.Reverse(ids)
	if diff := cmp.Diff(ids, walk("order=asc")); diff != "" {
		t.Errorf("oldest first (-want +got): %s", diff)
	}
	if page := s.get("/v1/batches?limit=7").ok(); page["has_more"] != false {
		t.Errorf("got has_more %v for the last page, want false", page["has_more"])
	}
	empty := s.get("/v1/batches?status=expired&unknown=1&after=").ok()
	want := map[string]any{"object": "list", "data": []any{}, "first_id": nil, "last_id": nil,
		"has_more": false}
	if diff := cmp.Diff(want, empty); diff != "" {
		t.Errorf("an empty page (-want +got): %s", diff)
	}
}

func TestListRefusals(t *testing.T) {
	s := newService(t)
	for query, param := range map[string]string{
		"limit=0": "limit", "limit=101": "limit", "limit=x": "limit", "limit=-1": "limit",
		"limit=1.5": "limit",
		"order=up":  "order", "sort=size": "sort", "status=done": "status",
		"state=in_progress,x": "state", "after=batch_x": "after",
		"created_after=yesterday": "created_after", "created_before=-1": "created_before",
		"deadline_after=x": "deadline_after", "deadline_before=1e9": "deadline_before",
		"metadata[]=x": "metadata[]", "metadata[a=x": "metadata[a",
		"metadata[a]=1&metadata[b]=2": "metadata", "metadata[a]=1&metadata[a]=2": "metadata",
	} {
		s.get("/v1/batches?"+query).refused(http.StatusBadRequest, param, "invalid_value")
	}
}

func TestListFilters(t *testing.T) {
	s := newService(t)
	start := s.clock.now()
	chat, file := s.upload(line("a")), s.upload(lineFor("a", "/v1/chat/completions", "other"))
	name := map[string]string{}
	add := func(as string, a answer) {
		name[a.ok()["id"].(string)] = as
		s.clock.advance(time.Hour)
	}
	add("plain", s.createOf(chat))
	add("other", s.createOf(file, `"metadata":{"team":"red","night":""}`))
	add("urgent", s.createOf(chat, `"tidefill":{"deadline":"1m"}`, `"metadata":{"team":"blue"}`))
	add("some day", s.post("/v1/batches",
		fmt.Sprintf(
			`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"best_effort"}`, chat)))
	for id, as := range name {
		if as == "other" {
			s.change(id, func(b *store.Batch) { b.State = store.InProgress })
		}
	}
	at := func(d time.Duration) string { return fmt.Sprint(start.Add(d).Unix()) }
	written := func(d time.Duration) string {
		return url.QueryEscape(start.Add(d).Format(time.RFC3339))
	}
	for query, want := range map[string]string{
		"":                                     "some day, urgent, other, plain",
		"order=desc":                           "some day, urgent, other, plain",
		"sort=deadline&order=asc":              "urgent, plain, other, some day",
		"sort=deadline":                        "other, plain, urgent, some day",
		"status=in_progress":                   "other",
		"state=in_progress":                    "other",
		"status=in_progress,validating":        "some day, urgent, other, plain",
		"status=in_progress&status=completed":  "other",
		"model=other":                          "other",
		"metadata[team]":                       "urgent, other",
		"metadata%5Bteam%5D=red":               "other",
		"metadata[night]":                      "other",
		"metadata[team]=green":                 "",
		"created_after=" + at(90*time.Minute):  "some day, urgent",
		"created_before=" + written(time.Hour): "plain",
		"deadline_before=" + at(23*time.Hour):  "urgent",
		"deadline_after=" + written(24*time.Hour+time.Minute):           "other",
		"model=m&metadata[team]=blue&status=validating&sort=created_at": "urgent",
	} {
		var got []string
		for _, b := range s.get("/v1/batches?" + query).ok()["data"].([]any) {
			got = append(got, name[b.(map[string]any)["id"].(string)])
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("%s: got %s; want %s", query, got, want)
		}
	}
}

// countingBoard counts the reads of progress.
type countingBoard struct {
	board ProgressBoard
	asked int
}

func (c *countingBoard) ProgressPosts(
	ctx context.Context, batches []string,
) (map[string][]store.ProgressPost, error) {
	c.asked++
	return c.board.ProgressPosts(ctx, batches)
}

func TestProgressIsLive(t *testing.T) {
	board := new(countingBoard)
	s := newService(t, func(_ *Config, d *Deps) {
		board.board = d.Progress
		d.Progress = board
	})
	content := ""
	for i := range 10 {
		content += line(fmt.Sprint(i))
	}
	id := s.create(content)["id"].(string)
	s.change(id, func(b *store.Batch) { b.State = store.InProgress })
	owner, err := s.meta.Register(t.Context(), "node", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	post := func(p store.Progress) {
		if err := s.meta.PostProgress(t.Context(), owner,
			map[string]store.ProgressPost{id: {Progress: p}}); err != nil {
			t.Fatal(err)
		}
	}
	post(store.Progress{Completed: 4, Failed: 1, InFlight: 2, Retrying: 1, Attempts: 9,
		LinesPerSecond: 0.3004, Waiting: "at_limit", UpdatedAt: s.clock.now()})
	b := s.get("/v1/batches/" + id).ok()
	if diff := cmp.Diff(map[string]any{"total": 10.0, "completed": 4.0, "failed": 1.0},
		b["request_counts"]); diff != "" {
		t.Errorf("counts (-want +got): %s", diff)
	}
	got := b["tidefill"].(map[string]any)
	for key, want := range map[string]any{
		"progress": 0.5, "in_flight": 2.0, "retrying": 1.0, "attempts": 9.0, "rate": 0.3,
		"waiting": "at_limit",
		"eta":     float64(s.clock.now().Unix() + 17),
	} {
		if got[key] != want {
			t.Errorf("%s: got %v, want %v", key, got[key], want)
		}
	}

	post(store.Progress{Completed: 1}) // a new dispatcher has not replayed yet
	if diff := cmp.Diff(b["request_counts"],
		s.get("/v1/batches/" + id).ok()["request_counts"]); diff != "" {
		t.Errorf("counts have decreased (-before +after): %s", diff)
	}

	s.create(content)
	board.asked = 0
	if n := len(s.get("/v1/batches").ok()["data"].([]any)); n != 2 || board.asked != 1 {
		t.Errorf("a page of %d batches read progress %d times, want once for 2", n,
			board.asked)
	}

	s.change(id, func(b *store.Batch) {
		b.State, b.CompletedAt, b.Counts = store.Completed, s.clock.now(),
			store.Counts{Total: 10, Completed: 8, Failed: 2}
		b.Attempts = 12
		b.Usage = &batchfile.Usage{InputTokens: 5, OutputTokens: 6, TotalTokens: 11,
			CachedTokens: 3, ReasoningTokens: 2}
		b.Outputs[0].HasOutput = true
	})
	b = s.get("/v1/batches/" + id).ok()
	got = b["tidefill"].(map[string]any)
	if got["progress"] != 1.0 || got["attempts"] != 12.0 || got["in_flight"] != 0.0 ||
		got["eta"] != nil || got["waiting"] != nil {
		t.Errorf("got %v for a completed batch", got)
	}
	wantUsage := map[string]any{
		"input_tokens": 5.0, "input_tokens_details": map[string]any{"cached_tokens": 3.0},
		"output_tokens": 6.0, "output_tokens_details": map[string]any{"reasoning_tokens": 2.0},
		"total_tokens": 11.0,
	}
	if diff := cmp.Diff(wantUsage, b["usage"]); diff != "" {
		t.Errorf("usage (-want +got): %s", diff)
	}
	if b["output_file_id"] == nil || b["error_file_id"] != nil || b["completed_at"] == nil {
		t.Errorf("got files %v and %v, completed at %v", b["output_file_id"], b["error_file_id"],
			b["completed_at"])
	}
}

func TestShowOutputsPerInput(t *testing.T) {
	b := showBatch(store.Batch{
		State:  store.Cancelled,
		Inputs: []store.Input{{FileID: "in-0"}, {FileID: "in-1"}, {FileID: "in-2"}},
		Outputs: []store.Output{
			{Input: 0, OutputID: "out-0", ErrorID: "err-0"},
			{Input: 1, OutputID: "out-1", ErrorID: "err-1", HasErrors: true},
			{Input: 2, OutputID: "out-2", ErrorID: "err-2", HasOutput: true, HasErrors: true},
		},
		Reason: "over max_failed_lines", Options: store.Options{RetryOf: "batch_0"},
	}, store.Progress{InFlight: 3}, time.Unix(0, 0))
	text := func(s string) *string { return &s }
	want := []batchOutput{
		{InputFileID: text("in-1"), ErrorFileID: text("err-1")},
		{InputFileID: text("in-2"), OutputFileID: text("out-2"), ErrorFileID: text("err-2")},
	}
	if diff := cmp.Diff(want, b.Tidefill.Outputs); diff != "" {
		t.Errorf("outputs (-want +got): %s", diff)
	}
	if *b.OutputFileID != "out-2" || *b.ErrorFileID != "err-1" || b.Tidefill.InFlight != 0 {
		t.Errorf("got output %s, errors %s, %d in flight", *b.OutputFileID, *b.ErrorFileID,
			b.Tidefill.InFlight)
	}
	if *b.Tidefill.Reason != "over max_failed_lines" || *b.Tidefill.RetryOf != "batch_0" {
		t.Errorf("got reason %q, retry of %q", *b.Tidefill.Reason, *b.Tidefill.RetryOf)
	}
}
