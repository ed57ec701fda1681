package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/disk"
)

// diskJournals gives the server journals on disk.
func diskJournals(t testing.TB) func(*Config, *Deps) {
	t.Helper()
	d, err := disk.Open(t.TempDir(), disk.Options{CommitAfter: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return func(_ *Config, deps *Deps) { deps.Journals = d.Journals() }
}

// end completes a batch. The lines with these custom_id literals have failed, by output.
func (s *service) end(id string, failed ...[]string) {
	s.t.Helper()
	b, err := s.meta.Batch(s.t.Context(), "", id)
	if err != nil {
		s.t.Fatal(err)
	}
	counts := b.Counts
	for i, literals := range failed {
		var content []byte
		for _, literal := range literals {
			content = batchfile.AppendResult(content, batchfile.Result{
				ID: "batch_req_1", CustomID: []byte(literal), ErrorCode: "batch_expired",
				ErrorMessage: "x",
			})
			counts.Failed++
		}
		if len(literals) > 0 {
			s.resultFile(b.Outputs[i].ErrorID, content)
		}
	}
	counts.Completed = counts.Total - counts.Failed
	s.change(id, func(b *store.Batch) {
		b.State, b.CompletedAt, b.Counts = store.Completed, s.clock.now(), counts
		for i := range failed {
			b.Outputs[i].HasErrors = len(failed[i]) > 0
		}
	})
}

func (s *service) resultFile(id string, content []byte) {
	s.t.Helper()
	w, err := s.blobs.Create(s.t.Context(), "files/"+id)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		s.t.Fatal(err)
	}
	if err := w.Commit(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	err = s.meta.CreateFile(s.t.Context(), store.File{
		ID: id, Tenant: DefaultTenant, Purpose: "batch_output", Filename: id + ".jsonl",
		Bytes:     int64(len(content)),
		CreatedAt: s.clock.now(), BlobKey: "files/" + id,
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *service) retry(id, body string) answer {
	s.t.Helper()
	return s.post("/v1/batches/"+id+"/retry", body)
}

func TestRetryCopiesFailedLinesAsTheyWere(t *testing.T) {
	s := newService(t)
	odd := `  {"body":{"model":"m","seed":12345678901234567890, "x" : "é\u00e9"} ,"url":"/v1/chat/completions","custom_id":"\u0062","method":"POST"}`
	id := s.create(line("a") + "\n" + odd + "\r\n" + line("c") + strings.TrimSuffix(line("d"),
		"\n"))["id"].(string)
	s.end(id, []string{`"b"`, `"d"`})
	b := s.retry(id, "").ok()
	if b["status"] != "validating" || b["tidefill"].(map[string]any)["retry_of"] != id ||
		b["request_counts"].(map[string]any)["total"] != 2.0 {
		t.Errorf("got %v", b)
	}
	want := strings.TrimSpace(odd) + "\n" + line("d")
	file := b["input_file_id"].(string)
	if got := s.get("/v1/files/" + file + "/content").body; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if f := s.get("/v1/files/" + file).ok(); f["purpose"] != "batch" ||
		f["filename"] != "retry-of-"+id+".jsonl" || f["expires_at"] == nil {
		t.Errorf("got file %v", f)
	}
}

func TestRetryKeepsOrReplacesOptions(t *testing.T) {
	s := newService(t)
	start := s.clock.now().Unix()
	id := s.create(line("a")+line("b"), `"metadata":{"team":"red"}`,
		`"output_expires_after":{"anchor":"created_at","seconds":7200}`,
		fmt.Sprintf(`"tidefill":{"deadline":"2h","start_by":%d,"priority":7,"canary":1}`,
			start+60))["id"].(string)
	s.end(id, []string{`"b"`})
	s.clock.advance(3 * time.Hour)
	later := s.clock.now()

	kept := s.retry(id, "{}").ok()
	stored, err := s.meta.Batch(t.Context(), "", kept["id"].(string))
	if err != nil {
		t.Fatal(err)
	}
	want := store.Options{Priority: 7, Canary: 1, CanaryMaxFailedRatio: 0.5,
		GroupBy: "prefix", OutputLife: 2 * time.Hour, RetryOf: id}
	if diff := cmp.Diff(want, stored.Options); diff != "" {
		t.Errorf("options (-want +got): %s", diff)
	}
	if !stored.Deadline.Equal(later.Add(2*time.Hour)) || !stored.StartBy.IsZero() ||
		stored.Metadata["team"] != "red" || stored.Window != "24h" {
		t.Errorf("got deadline %v, start %v, metadata %v, window %s", stored.Deadline,
			stored.StartBy, stored.Metadata, stored.Window)
	}

	replaced := s.retry(
		id, `{"completion_window":"best_effort","metadata":{"night":"2"},"tidefill":{"priority":-1}}`).ok()
	if stored, err = s.meta.Batch(t.Context(), "", replaced["id"].(string)); err != nil {
		t.Fatal(err)
	}
	want = store.Options{Priority: -1, GroupBy: "prefix", OutputLife: 2 * time.Hour, RetryOf: id}
	if diff := cmp.Diff(want, stored.Options); diff != "" || !stored.Deadline.IsZero() ||
		stored.Metadata["night"] != "2" || len(stored.Metadata) != 1 {
		t.Errorf("got deadline %v, metadata %v, options (-want +got): %s", stored.Deadline,
			stored.Metadata, diff)
	}
}

func TestRetryOfSeveralInputs(t *testing.T) {
	s := newService(t)
	inputs := []string{s.upload(line("a") + line("b")), s.upload(line("c") + line("d")),
		s.upload(line("e") + line("f"))}
	for _, outputs := range []string{"joined", "per_input"} {
		t.Run(outputs, func(t *testing.T) {
			s := *s
			s.t = t
			id := s.post("/v1/batches", fmt.Sprintf(
				`{"endpoint":"/v1/chat/completions","completion_window":"24h","tidefill":{"outputs":%q,"input_file_ids":["%s"]}}`,
				outputs, strings.Join(inputs, `","`))).ok()["id"].(string)
			failed := [][]string{{`"b"`, `"e"`, `"f"`}}
			if outputs == "per_input" {
				failed = [][]string{{`"b"`}, nil, {`"e"`, `"f"`}}
			}
			s.end(id, failed...)
			b := s.retry(id, "").ok()
			var got []string
			for _, file := range b["tidefill"].(map[string]any)["input_file_ids"].([]any) {
				got = append(got, s.get("/v1/files/"+file.(string)+"/content").body)
			}
			if diff := cmp.Diff([]string{line("b"), line("e") + line("f")}, got); diff != "" ||
				b["status"] != "validating" {
				t.Errorf("status %v, files (-want +got): %s", b["status"], diff)
			}
			stored, err := s.meta.Batch(t.Context(), "", b["id"].(string))
			if err != nil {
				t.Fatal(err)
			}
			if stored.Options.OutputPerInput != (outputs == "per_input") {
				t.Errorf("got outputs per input %v", stored.Options.OutputPerInput)
			}
		})
	}
}

func TestRetryRefusals(t *testing.T) {
	s := newService(t)
	file := s.upload(line("a") + line("b"))
	ended := func(failed ...string) string {
		id := s.createOf(file).ok()["id"].(string)
		s.end(id, failed)
		return id
	}
	s.retry(ended(), "").refused(http.StatusBadRequest, "", "nothing_failed", "nothing to retry")
	s.retry(s.create("{\n")["id"].(string), "").refused(http.StatusBadRequest, "", "nothing_failed")
	id := ended(`"b"`)
	for body, want := range map[string][2]string{
		`{`:                             {"", "invalid_json"},
		`{"endpoint":"/v1/embeddings"}`: {"endpoint", "unknown_parameter"},
		`{"completion_window":"x"}`:     {"completion_window", "invalid_value"},
		`{"tidefill":{"priorty":1}}`:    {"tidefill.priorty", "unknown_parameter"},
		`{"tidefill":{"input_file_ids":["file-x"]}}`: {"tidefill.input_file_ids", "invalid_value"},
	} {
		s.retry(id, body).refused(http.StatusBadRequest, want[0], want[1])
	}
	before := len(s.stored())
	astray := ended(`"b"`, `"a"`) // not the order that a finalizer writes
	s.retry(astray, "").refused(http.StatusInternalServerError, "", "")
	if after := len(s.stored()); after != before+1 { // the error file of astray
		t.Errorf("%d blobs before a failed retry, %d after: %v", before, after, s.stored())
	}
	b, err := s.meta.Batch(t.Context(), "", id)
	if err != nil {
		t.Fatal(err)
	}
	s.do("DELETE", "/v1/files/"+file, nil).ok()
	s.retry(id, "").refused(http.StatusBadRequest, "input_file_id", "input_file_gone", file)
	s.do("DELETE", "/v1/files/"+b.Outputs[0].ErrorID, nil).ok()
	s.retry(id, "").refused(http.StatusBadRequest, "", "error_file_gone", b.Outputs[0].ErrorID)
}

// slowBlobs delays the first blob that is created after it was armed.
type slowBlobs struct {
	Blobs
	held    chan struct{} // closed when a blob is delayed; nil: not armed
	release chan struct{}
	passed  atomic.Bool // a blob was delayed
}

func (b *slowBlobs) Create(ctx context.Context, key string) (store.BlobWriter, error) {
	if b.held != nil && b.passed.CompareAndSwap(false, true) {
		close(b.held)
		<-b.release
	}
	return b.Blobs.Create(ctx, key)
}

// A slow retry is created once, however often it is requested with the same key.
func TestSlowRetryIsMadeOnce(t *testing.T) {
	slow := &slowBlobs{release: make(chan struct{})}
	s := newService(t, func(_ *Config, d *Deps) { slow.Blobs = d.Blobs; d.Blobs = slow })
	id := s.create(line("a"))["id"].(string)
	s.end(id, []string{`"a"`})
	slow.held = make(chan struct{})
	release := sync.OnceFunc(func() { close(slow.release) })
	defer release()
	first := make(chan answer, 1)
	go func() { first <- s.post("/v1/batches/"+id+"/retry", "{}", "Idempotency-Key", "k") }()
	<-slow.held
	s.clock.advance(maxCreationTime + time.Second)
	s.post("/v1/batches/"+id+"/retry", "{}", "Idempotency-Key", "k").refused(409, "",
		"idempotency_in_progress", "still being handled")
	release()
	made := (<-first).ok()
	if again := s.post("/v1/batches/"+id+"/retry", "{}", "Idempotency-Key",
		"k").ok(); again["id"] != made["id"] {
		t.Errorf("one key created %v and %v", made["id"], again["id"])
	}
}

// A process that was held up for longer than a key without an object is believed creates nothing
// after another process has created the retry.
func TestHeldUpRetryIsMadeOnce(t *testing.T) {
	slow := &slowBlobs{release: make(chan struct{})}
	s := newService(t, func(_ *Config, d *Deps) { slow.Blobs = d.Blobs; d.Blobs = slow })
	id := s.create(line("a"))["id"].(string)
	s.end(id, []string{`"a"`})
	slow.held = make(chan struct{})
	release := sync.OnceFunc(func() { close(slow.release) })
	defer release()
	retry := func() answer {
		return s.post("/v1/batches/"+id+"/retry", "{}", "Idempotency-Key", "k")
	}
	first := make(chan answer, 1)
	go func() { first <- retry() }()
	<-slow.held
	s.clock.advance(maxCreationTime + time.Second)
	s.server.creating.Clear() // another process does not know of the first request
	made := retry().ok()["id"]
	release()
	if late := (<-first).ok()["id"]; late != made {
		t.Errorf("one key created %v and %v", made, late)
	}
	if again := retry().ok()["id"]; again != made {
		t.Errorf("the key gives %v, it created %v", again, made)
	}
	for path, want := range map[string]int{"/v1/batches": 2, "/v1/files?purpose=batch": 2} {
		if all := s.get(path).ok()["data"].([]any); len(all) != want {
			t.Errorf("%s lists %d objects, want %d", path, len(all), want)
		}
	}
}
