package api

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

// silent is a store whose next creation gets no answer.
type silent struct {
	Metadata
	lost    bool          // the next one gets no answer
	commits bool          // it is made all the same
	late    chan struct{} // not nil: it waits for that
	held    chan struct{} // closed when it waits
}

func (m *silent) create(create func() error) error {
	if !m.lost {
		return create()
	}
	m.lost = false
	if m.late != nil {
		close(m.held)
		<-m.late
		return create()
	}
	if m.commits {
		if err := create(); err != nil {
			return err
		}
	}
	return fmt.Errorf("create: %w: the connection was cut", store.ErrUnavailable)
}

func (m *silent) CreateBatch(ctx context.Context, b store.Batch, files ...store.File) error {
	return m.create(func() error { return m.Metadata.CreateBatch(ctx, b, files...) })
}

func (m *silent) CreateFile(ctx context.Context, f store.File) error {
	return m.create(func() error { return m.Metadata.CreateFile(ctx, f) })
}

func newSilentService(t *testing.T) (*service, *silent) {
	meta := &silent{}
	return newService(t, func(_ *Config, d *Deps) {
		meta.Metadata = d.Metadata
		d.Metadata = meta
	}), meta
}

// uploadOnce sends an upload with a key.
func (s *service) uploadOnce(key string) answer {
	s.t.Helper()
	body, contentType := encodeForm(s.t, field{name: "purpose", value: "batch"},
		field{name: "file", filename: "in.jsonl", value: line("a")})
	return s.do("POST", "/v1/files", body, "Content-Type", contentType, "Idempotency-Key", key)
}

// checkOne checks that a list has one object.
func (s *service) checkOne(list string) {
	s.t.Helper()
	if all := s.get(list).ok()["data"].([]any); len(all) != 1 {
		s.t.Errorf("%s has %d objects, want 1", list, len(all))
	}
}

var outcomes = map[string]bool{"it was made": true, "it was not": false}

// A request whose outcome is unknown is sent again with its key, and makes no second batch.
func TestAnUnknownOutcomeMakesNoSecondBatch(t *testing.T) {
	for what, commits := range outcomes {
		t.Run(what, func(t *testing.T) {
			s, meta := newSilentService(t)
			body := fmt.Sprintf(
				`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`,
				s.upload(line("a")))
			meta.lost, meta.commits = true, commits
			create := func() answer { return s.post("/v1/batches", body, "Idempotency-Key", "k") }
			create().refused(503, "", "store_unavailable")
			id := create().ok()["id"]
			if again := create().ok()["id"]; again != id {
				t.Errorf("the key has the batches %v and %v", id, again)
			}
			s.checkOne("/v1/batches")
		})
	}
}

// A file that may exist is found again by its key. One that does not is made when it can no longer
// come to exist.
func TestAnUnknownOutcomeMakesNoSecondFile(t *testing.T) {
	for what, commits := range outcomes {
		t.Run(what, func(t *testing.T) {
			s, meta := newSilentService(t)
			meta.lost, meta.commits = true, commits
			s.uploadOnce("k").refused(503, "", "store_unavailable")
			if !commits {
				s.uploadOnce("k").refused(409, "", "idempotency_in_progress")
				s.clock.advance(maxCreationTime + time.Second)
			}
			id := s.uploadOnce("k").ok()["id"]
			if again := s.uploadOnce("k").ok()["id"]; again != id {
				t.Errorf("the key has the files %v and %v", id, again)
			}
			s.checkOne("/v1/files")
		})
	}
}

// A process that was held up for longer than a key without an object is believed creates no file
// after another process has created it.
func TestAHeldUpUploadMakesNoSecondFile(t *testing.T) {
	s, meta := newSilentService(t)
	meta.lost, meta.late, meta.held = true, make(chan struct{}), make(chan struct{})
	first := make(chan answer, 1)
	go func() { first <- s.uploadOnce("k") }()
	<-meta.held
	s.clock.advance(maxCreationTime + time.Second)
	s.server.creating.Clear() // another process does not know of the first request
	id := s.uploadOnce("k").ok()["id"]
	close(meta.late)
	(<-first).refused(409, "", "conflict")
	if again := s.uploadOnce("k").ok()["id"]; again != id {
		t.Errorf("the key has the files %v and %v", id, again)
	}
	s.checkOne("/v1/files")
}
