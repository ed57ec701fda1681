package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

func TestFileLifecycle(t *testing.T) {
	s := newService(t)
	id := s.upload(line("a"))
	if got := s.get("/v1/files/" + id).ok(); got["id"] != id {
		t.Errorf("got %v, want file %s", got, id)
	}
	got := s.do("DELETE", "/v1/files/"+id, nil).ok()
	if len(got) != 3 || got["id"] != id || got["object"] != "file" || got["deleted"] != true {
		t.Errorf("got %v, want {id, object: file, deleted: true}", got)
	}
	for _, a := range []answer{
		s.do("DELETE", "/v1/files/"+id, nil), s.get("/v1/files/" + id),
		s.get("/v1/files/" + id + "/content"),
	} {
		a.refused(404, "id", "", "No such File object: "+id)
	}
	s.nothingStored()
}

func TestHostileIDs(t *testing.T) {
	s := newService(t)
	for _, id := range []string{"..%2F..%2Fetc%2Fpasswd", "%00", "file-%FF", strings.Repeat("x",
		5000), "'; DROP TABLE files", "%2e%2e"} {
		id = strings.ReplaceAll(id, " ", "%20")
		s.get("/v1/files/"+id).refused(404, "id", "", "No such File object")
		s.get("/v1/files/"+id+"/content").refused(404, "id", "", "No such File object")
	}
}

func TestListFiles(t *testing.T) {
	s := newService(t)
	var batch, all []string
	for i := range 7 {
		purpose := "batch"
		if i%3 == 2 {
			purpose = "user_data"
		}
		id := s.postForm("/v1/files", field{name: "purpose", value: purpose},
			field{name: "file", filename: "a.jsonl", value: line("a")}).ok()["id"].(string)
		all = append(all, id)
		if purpose == "batch" {
			batch = append(batch, id)
		}
		if i == 3 {
			s.clock.advance(time.Second) // the others share their second
		}
	}
	for _, test := range []struct {
		query string
		want  []string
	}{
		{"order=asc", all}, {"order=asc&purpose=batch", batch}, {"order=asc&purpose=vision", nil},
	} {
		for _, limit := range []int{1, 2, 3, 6, 7, 10_000} {
			for _, order := range []string{"asc", "desc", ""} {
				want := slices.Clone(test.want)
				query := strings.Replace(test.query, "order=asc", "order="+order, 1)
				if order != "asc" {
					slices.Reverse(want)
				}
				if got := s.walk("/v1/files?"+query, limit); !slices.Equal(got, want) {
					t.Errorf("%s by %d: got %v, want %v", query, limit, got, want)
				}
			}
		}
	}
	s.get("/v1/files?limit=3").ok()
	empty := s.get("/v1/files?purpose=evals").ok()
	for key, want := range map[string]any{"object": "list", "first_id": nil, "last_id": nil,
		"has_more": false} {
		if v, there := empty[key]; !there || v != want {
			t.Errorf("empty page: got %s %v, want %v", key, v, want)
		}
	}
	if data, ok := empty["data"].([]any); !ok || len(data) > 0 {
		t.Errorf("empty page: got data %v, want []", empty["data"])
	}
	for query, param := range map[string]string{
		"limit=0": "limit", "limit=10001": "limit", "limit=x": "limit", "limit=-1": "limit",
		"limit=1e3":                  "limit",
		"limit=99999999999999999999": "limit", "order=up": "order", "after=file-none": "after",
	} {
		s.get("/v1/files?"+query).refused(400, param, "invalid_value")
	}
}

// walk reads all pages of a listing as the SDKs do and returns the ids.
func (s *service) walk(path string, limit int) (ids []string) {
	s.t.Helper()
	for after := ""; ; after = "&after=" + ids[len(ids)-1] {
		page := s.get(fmt.Sprintf("%s&limit=%d%s", path, limit, after)).ok()
		data := page["data"].([]any)
		if len(data) > limit {
			s.t.Fatalf("got a page of %d, want at most %d", len(data), limit)
		}
		for _, item := range data {
			ids = append(ids, item.(map[string]any)["id"].(string))
		}
		if page["has_more"] == false || len(data) == 0 {
			return ids
		}
		if page["last_id"] != ids[len(ids)-1] ||
			page["first_id"] != data[0].(map[string]any)["id"] {
			s.t.Fatalf("got first_id %v and last_id %v, want those of the data", page["first_id"],
				page["last_id"])
		}
	}
}

func TestListingOfMoreThanOneRead(t *testing.T) {
	s := newService(t)
	var want []string
	for i := range 2*filesAtOnce + 1 {
		f := store.File{ID: fmt.Sprintf("file-%d", i), Tenant: DefaultTenant,
			Purpose: "batch_output", Filename: "x", CreatedAt: s.clock.now()}
		if err := s.meta.CreateFile(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		want = append(want, f.ID)
	}
	for _, limit := range []int{filesAtOnce - 1, filesAtOnce, filesAtOnce + 1, 2 * filesAtOnce,
		10_000} {
		if got := s.walk("/v1/files?order=asc", limit); !slices.Equal(got, want) {
			t.Errorf("by %d: got %d files, want %d in order", limit, len(got), len(want))
		}
	}
}

func TestContentRanges(t *testing.T) {
	s := newService(t)
	content := line("a")
	id := s.upload(content)
	path := "/v1/files/" + id + "/content"
	complete := s.get(path)
	etag := complete.header.Get("Etag")
	if complete.body != content ||
		complete.header.Get("Content-Length") != fmt.Sprint(len(content)) ||
		etag == "" {
		t.Errorf("got %q with header %v, want %q with its length and an ETag", complete.body,
			complete.header, content)
	}
	if got := complete.header.Get("Content-Disposition"); got != "attachment; filename=in.jsonl" {
		t.Errorf("got Content-Disposition %q", got)
	}
	for name, test := range map[string]struct {
		header []string
		status int
		want   string
	}{
		"a range":         {[]string{"Range", "bytes=1-4"}, 206, content[1:5]},
		"from the middle": {[]string{"Range", "bytes=9-"}, 206, content[9:]},
		"the end":         {[]string{"Range", "bytes=-5"}, 206, content[len(content)-5:]},
		"If-Range that holds": {[]string{"Range", "bytes=1-4", "If-Range", etag}, 206,
			content[1:5]},
		"If-Range that does not": {[]string{"Range", "bytes=1-4", "If-Range", `"other"`}, 200,
			content},
		"known already": {[]string{"If-None-Match", etag}, 304, ""},
		"any Accept":    {[]string{"Accept", "application/binary"}, 200, content},
	} {
		if got := s.get(path, test.header...); got.status != test.status || got.body != test.want {
			t.Errorf("%s: got %d %q, want %d %q", name, got.status, got.body, test.status,
				test.want)
		}
	}
	for _, r := range []string{"bytes=100000-", "bytes=5-1", "bytes=x"} {
		a := s.get(path, "Range", r)
		a.refused(http.StatusRequestedRangeNotSatisfiable, "", "invalid_range", r)
	}
	if head := s.do("HEAD", path, nil); head.status != 200 ||
		head.header.Get("Content-Length") != fmt.Sprint(len(content)) {
		t.Errorf("HEAD: got %d, %v", head.status, head.header)
	}
}

func TestEmptyFileHasContent(t *testing.T) {
	s := newService(t)
	id := s.postForm("/v1/files", field{name: "purpose", value: "batch"},
		field{name: "file", filename: "a.jsonl"}).ok()["id"].(string)
	if a := s.get("/v1/files/" + id + "/content"); a.status != 200 || a.body != "" {
		t.Errorf("got %d %q, want an empty 200", a.status, a.body)
	}
	f, err := s.meta.File(t.Context(), DefaultTenant, id)
	if err != nil || f.Summary.FaultCount != 1 || f.Summary.Faults[0].Code != "empty_file" {
		t.Errorf("got %+v, %v; want the fault empty_file", f.Summary, err)
	}
}

// reading creates a batch of the file in a state.
func (s *service) reading(fileID string, state store.State) store.Batch {
	s.t.Helper()
	f, err := s.meta.File(s.t.Context(), DefaultTenant, fileID)
	if err != nil {
		s.t.Fatal(err)
	}
	b := store.Batch{
		ID: newID(batchPrefix), Tenant: DefaultTenant, State: state,
		Endpoint: "/v1/chat/completions", CreatedAt: s.clock.now(),
		Inputs: []store.Input{{FileID: f.ID, BlobKey: f.BlobKey, IndexKey: f.IndexKey, Lines: 1}},
	}
	if state.Terminal() {
		b.CompletedAt = s.clock.now()
	}
	if err := s.meta.CreateBatch(s.t.Context(), b); err != nil {
		s.t.Fatal(err)
	}
	return b
}

func TestBytesStayWhileABatchReadsThem(t *testing.T) {
	for _, test := range []struct {
		state store.State
		kept  bool
	}{{store.Validating, true}, {store.InProgress, true}, {store.Cancelling, true},
		{store.Finalizing, true}, {store.Completed, false}} {
		s := newService(t)
		id := s.upload(line("a"))
		s.reading(s.upload(line("other")), store.InProgress)
		s.reading(id, test.state)
		s.do("DELETE", "/v1/files/"+id, nil).ok()
		if kept := len(s.stored()) == 4; kept != test.kept {
			t.Errorf("%s: got the bytes kept %v, want %v", test.state, kept, test.kept)
		}
		s.get("/v1/files/"+id).refused(404, "id", "")
	}
}

// deletingFirst deletes a file just before each batch is created, as another process can.
type deletingFirst struct {
	Metadata
	delete func()
}

func (m *deletingFirst) CreateBatch(ctx context.Context, b store.Batch, made ...store.File) error {
	m.delete()
	return m.Metadata.CreateBatch(ctx, b, made...)
}

func TestBatchOfAFileDeletedDuringCreation(t *testing.T) {
	meta := &deletingFirst{}
	s := newService(t, func(_ *Config, d *Deps) {
		meta.Metadata = d.Metadata
		d.Metadata = meta
	})
	id := s.upload(line("a"))
	meta.delete = func() { s.do("DELETE", "/v1/files/"+id, nil).ok() }
	body := fmt.Sprintf(
		`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`, id)
	s.post("/v1/batches", body).refused(400, "input_file_id", "")
	if listed := s.get("/v1/batches").ok()["data"].([]any); len(listed) != 0 {
		t.Errorf("a batch without its input was created: %v", listed)
	}
	s.nothingStored()
}

// errorAfterCreate creates a file and reports an error, as a store does whose answer is lost.
type errorAfterCreate struct{ Metadata }

func (m errorAfterCreate) CreateFile(ctx context.Context, f store.File) error {
	return errors.Join(m.Metadata.CreateFile(ctx, f), errors.New("the answer is lost"))
}

func TestFileCreatedDespiteAnErrorKeepsItsBytes(t *testing.T) {
	s := newService(t, func(_ *Config, d *Deps) { d.Metadata = errorAfterCreate{d.Metadata} })
	s.postForm("/v1/files", field{name: "purpose", value: "evals"},
		field{name: "file", filename: "a", value: "x"}).refused(500, "", "")
	page := s.get("/v1/files").ok()["data"].([]any)
	if len(page) != 1 {
		t.Fatalf("got files %v, want the one", page)
	}
	s.get("/v1/files/" + page[0].(map[string]any)["id"].(string) + "/content").isWhole("x")
}
