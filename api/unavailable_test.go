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

// silent is a store whose next creation of a batch gets no answer.
type silent struct {
	Metadata
	lost, commits bool // the next one does not answer; it is made all the same
}

func (m *silent) CreateBatch(ctx context.Context, b store.Batch, files ...store.File) error {
	if !m.lost {
		return m.Metadata.CreateBatch(ctx, b, files...)
	}
	m.lost = false
	if m.commits {
		if err := m.Metadata.CreateBatch(ctx, b, files...); err != nil {
			return err
		}
	}
	return fmt.Errorf("create batch: %w: the connection was cut", store.ErrUnavailable)
}

// A request whose outcome is unknown is sent again with its key, and makes no second batch.
func TestAnUnknownOutcomeMakesNoSecondBatch(t *testing.T) {
	for what, commits := range map[string]bool{"it was made": true, "it was not": false} {
		t.Run(what, func(t *testing.T) {
			meta := &silent{commits: commits}
			s := newService(t, func(_ *Config, d *Deps) {
				meta.Metadata = d.Metadata
				d.Metadata = meta
			})
			body := fmt.Sprintf(
				`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`,
				s.upload(line("a")))
			meta.lost = true
			create := func() answer { return s.post("/v1/batches", body, "Idempotency-Key", "k") }
			create().refused(503, "", "store_unavailable")
			id := create().ok()["id"]
			if again := create().ok()["id"]; again != id {
				t.Errorf("the key has the batches %v and %v", id, again)
			}
			if all := s.get("/v1/batches").ok()["data"].([]any); len(all) != 1 {
				t.Errorf("got %d batches, want 1", len(all))
			}
		})
	}
}
