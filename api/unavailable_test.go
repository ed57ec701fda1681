package api

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/store"
)

// unreachable is a store that fails all writes.
type unreachable struct{ Metadata }

func (unreachable) fault(what string) error {
	return fmt.Errorf("%s: %w: another process holds the lock of /var/lib/secret.db", what,
		store.ErrUnavailable)
}

func (m unreachable) CreateFile(context.Context, store.File) error { return m.fault("create file") }
func (m unreachable) CreateBatch(context.Context, store.Batch, ...store.File) error {
	return m.fault("create batch")
}
func (m unreachable) DeleteFile(context.Context, string, string) (store.File, error) {
	return store.File{}, m.fault("delete file")
}
func (m unreachable) DropBlobs(context.Context, string, ...string) ([]string, error) {
	return nil, m.fault("drop blobs")
}

func TestAStoreThatIsUnavailableIsA503(t *testing.T) {
	meta := &switchable{}
	s := newService(t, func(_ *Config, d *Deps) {
		meta.Metadata = d.Metadata
		d.Metadata = meta
	})
	id := s.upload(line("a"))
	real := meta.Metadata
	meta.Metadata = unreachable{real}
	for what, a := range map[string]answer{
		"upload": s.postForm("/v1/files", field{name: "purpose", value: "evals"},
			field{name: "file", filename: "a", value: "x"}),
		"delete": s.do("DELETE", "/v1/files/"+id, nil),
		"create": s.post("/v1/batches",
			fmt.Sprintf(
				`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`,
				id)),
	} {
		a.refused(503, "", "store_unavailable")
		if a.header.Get("Retry-After") == "" || strings.Contains(a.body, "secret") {
			t.Errorf("%s: got Retry-After %q and %s", what, a.header.Get("Retry-After"), a.body)
		}
	}
	if !strings.Contains(s.logs.String(), "secret.db") {
		t.Errorf("the log lacks the reason: %s", s.logs)
	}
	meta.Metadata = real
	s.get("/v1/files/" + id + "/content").ok()
}

// switchable is a store that a test can replace.
type switchable struct{ Metadata }
