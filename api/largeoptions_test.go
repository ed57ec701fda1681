package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// createWith creates a batch of a file with a `tidefill` object.
func (s *service) createWith(file, options string) answer {
	s.t.Helper()
	return s.post("/v1/batches", fmt.Sprintf(
		`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h","tidefill":%s}`, file, options))
}

func TestOptionsOverTheLimit(t *testing.T) {
	s := newService(t, diskJournals(t), func(c *Config, _ *Deps) { c.MaxOptionsBytes = 1000 })
	file := s.upload(line("a"))
	options := func(size int) string {
		o := `{"overrides":{"stop":""}}`
		return strings.Replace(o, `""`, `"`+strings.Repeat("x", size-len(o))+`"`, 1)
	}
	s.createWith(file, options(1001)).refused(400, "tidefill", "invalid_value", "1001", "1000")
	id := s.createWith(file, options(1000)).ok()["id"].(string)
	s.end(id, []string{`"a"`})
	s.retry(id, `{"tidefill":`+options(1001)+`}`).refused(400, "tidefill", "invalid_value", "1001")
	s.retry(id, "").ok()
}

func TestListingsLeaveOutParameters(t *testing.T) {
	s := newService(t, diskJournals(t))
	file := s.upload(line("a"))
	made := s.createWith(
		file, `{"priority":7,"overrides":{"seed":12345678901234567890},"defaults":{"n":1},"check":{"json_schema":true}}`)
	id := made.ok()["id"].(string)
	plain := s.createWith(file, `{"priority":8}`).ok()["id"].(string)
	complete := `"options":{"priority":7,"overrides":{"seed":12345678901234567890},"defaults":{"n":1},"check":{"json_schema":true}},"options_omitted":null`
	for what, got := range map[string]answer{
		"create": made,
		"get":    s.get("/v1/batches/" + id),
		"pause":  s.post("/v1/batches/"+id+"/pause", ""),
	} {
		if !strings.Contains(got.body, complete) {
			t.Errorf("%s: got %s, want %s", what, got.body, complete)
		}
	}
	list := s.get("/v1/batches")
	list.ok()
	for _, want := range []string{
		`"options":{"priority":7},"options_omitted":["check","defaults","overrides"]`,
		`"options":{"priority":8},"options_omitted":null`} {
		if !strings.Contains(list.body, want) {
			t.Errorf("got the list %s, want %s in it", list.body, want)
		}
	}
	if got := list.object(); got["first_id"] != plain || got["last_id"] != id ||
		got["has_more"] != false || len(got["data"].([]any)) != 2 {
		t.Errorf("got a list from %v to %v, want from %s to %s", got["first_id"], got["last_id"],
			plain, id)
	}
	s.end(id, []string{`"a"`})
	retried := s.retry(id, "").ok()
	options := retried["tidefill"].(map[string]any)["options"].(map[string]any)
	if options["overrides"] == nil || options["check"] == nil {
		t.Errorf("the retry lost the overrides or the check: %v", retried)
	}
}

func TestListingsShortenFaults(t *testing.T) {
	s := newService(t)
	for _, faults := range []int{listedFaults, listedFaults + 1, listedFaults + 2, 900} {
		id := s.createWith(s.upload(strings.Repeat("garbage\n", faults)), `{}`).ok()["id"].(string)
		data := func(
			b any) []any {
			return b.(map[string]any)["errors"].(map[string]any)["data"].([]any)
		}
		if got := len(data(s.get("/v1/batches/" + id).ok())); got != faults {
			t.Errorf("got %d faults of %d by id", got, faults)
		}
		listed := data(s.get("/v1/batches?limit=1").ok()["data"].([]any)[0])
		want := faults
		if faults > listedFaults+1 {
			want = listedFaults + 1
			last := listed[len(listed)-1].(map[string]any)
			if last["code"] != codeMoreFaults || !strings.Contains(last["message"].(string),
				fmt.Sprint(faults-listedFaults)) {
				t.Errorf("got %v last, want an entry for %d more", last, faults-listedFaults)
			}
		}
		if len(listed) != want {
			t.Errorf("got %d faults of %d listed, want %d", len(listed), faults, want)
		}
	}
}

// TestSlowReadersOfListings sends listings of large batches and files to clients that stop reading
// at the first byte.
func TestSlowReadersOfListings(t *testing.T) {
	const readers, most = 10, 8 << 20
	s := newService(t)
	faults := make([]batchfile.Fault, maxFaults)
	for i := range faults {
		faults[i] = batchfile.Fault{Code: batchfile.CodeInvalidJSON,
			Message: strings.Repeat("wrong ", 40), Line: i + 1}
	}
	for i := range 20 {
		id := fmt.Sprintf("b%03d", i)
		b := store.Batch{ID: id, Tenant: DefaultTenant, State: store.Failed,
			CreatedAt: s.clock.now(), FailedAt: s.clock.now(), Errors: faults,
			Inputs: []store.Input{{FileID: "f"}}}
		if err := s.meta.CreateBatch(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		f := store.File{ID: "f" + id, Tenant: DefaultTenant, Purpose: purposeBatch,
			CreatedAt: s.clock.now(), Summary: &batchfile.Summary{Faults: faults}}
		if err := s.meta.CreateFile(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"/v1/batches?limit=100", "/v1/files"} {
		var before, during runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		stuck, release := make(chan struct{}, readers), make(chan struct{})
		ended := make(chan struct{}, readers)
		for range readers {
			go func() {
				defer func() { ended <- struct{}{} }()
				s.server.Handler().ServeHTTP(&stuckWriter{httptest.NewRecorder(), stuck, release},
					httptest.NewRequest("GET", path, nil))
			}()
		}
		for range readers {
			<-stuck
		}
		runtime.GC()
		runtime.ReadMemStats(&during)
		if held := int64(during.HeapAlloc) - int64(before.HeapAlloc); held > most {
			t.Errorf("%s: %d clients that do not read take %d MiB, want less than %d", path,
				readers,
				held>>20, most>>20)
		}
		close(release)
		for range readers {
			<-ended
		}
	}
}

// stuckWriter blocks its first write until it is released.
type stuckWriter struct {
	*httptest.ResponseRecorder
	stuck   chan<- struct{}
	release <-chan struct{}
}

func (w *stuckWriter) Write(p []byte) (int, error) {
	select {
	case <-w.release:
	default:
		w.stuck <- struct{}{}
		<-w.release
	}
	return w.ResponseRecorder.Write(p)
}

var _ http.ResponseWriter = (*stuckWriter)(nil)

func TestInputsTogetherAreBounded(t *testing.T) {
	s := newService(t, func(c *Config, _ *Deps) { c.MaxBatchLines = 70 })
	var lines, models []string
	for f := range 2 {
		var content strings.Builder
		for i := range 40 {
			content.WriteString(line(fmt.Sprintf("%d-%d", f, i)))
		}
		lines = append(lines, s.upload(content.String()))
		content.Reset()
		for i := range 33 {
			content.WriteString(strings.Replace(line(fmt.Sprintf("%d-%d", f, i)), `"m"`,
				fmt.Sprintf(`"m%d-%d"`, f, i), 1))
		}
		models = append(models, s.upload(content.String()))
	}
	create := func(files []string) map[string]any {
		return s.post("/v1/batches",
			fmt.Sprintf(
				`{"endpoint":"/v1/chat/completions","completion_window":"24h","tidefill":{"input_file_ids":[%q,%q]}}`,
				files[0], files[1])).ok()
	}
	codes := func(b map[string]any) (codes []any) {
		for _, fault := range b["errors"].(map[string]any)["data"].([]any) {
			codes = append(codes, fault.(map[string]any)["code"])
		}
		return codes
	}
	if diff := cmp.Diff([]any{"too_many_tasks"}, codes(create(lines))); diff != "" {
		t.Errorf("80 lines of 70 (-want +got): %s", diff)
	}
	b := create(models)
	if diff := cmp.Diff([]any{"too_many_models"}, codes(b)); diff != "" {
		t.Errorf("66 models of 64 (-want +got): %s", diff)
	}
	if shown := b["tidefill"].(map[string]any)["models"].([]any); len(shown) != maxModels {
		t.Errorf("got %d models shown, want %d", len(shown), maxModels)
	}
}
