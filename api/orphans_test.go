package api

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

// putBlob commits a blob as a process that is killed right after.
func (s *service) putBlob(key string) {
	s.t.Helper()
	w, err := s.blobs.Create(s.t.Context(), key)
	if err == nil {
		_, err = io.WriteString(w, "x")
	}
	if err == nil {
		err = w.Commit(s.t.Context())
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// asOfNow sets the clock to that of the file system, by which blobs are dated.
func (s *service) asOfNow() { s.clock.advance(time.Since(s.clock.now())) }

func (s *service) sweepOrphans() {
	s.t.Helper()
	if err := s.server.sweepOrphans(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *service) wantStored(want ...string) {
	s.t.Helper()
	var got []string
	for _, path := range s.stored() {
		key, err := filepath.Rel("blobs", path)
		if err != nil {
			s.t.Fatal(err)
		}
		got = append(got, filepath.ToSlash(key))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.t.Errorf("got blobs\n%q, want\n%q", got, want)
	}
}

// endLost ends a batch without recording its results.
func (s *service) endLost(id string) {
	s.t.Helper()
	s.change(id, func(b *store.Batch) { b.State, b.CompletedAt = store.Completed, s.clock.now() })
}

// withResults creates a batch that has keys for its results.
func (s *service) withResults(inputID, outputID, errorID string) store.Batch {
	s.t.Helper()
	b := s.reading(inputID, store.Finalizing)
	s.change(b.ID, func(b *store.Batch) {
		b.Outputs = []store.Output{{Input: -1, OutputID: outputID, ErrorID: errorID}}
	})
	return b
}

func (s *service) createFile(id, tenant string) {
	s.t.Helper()
	err := s.meta.CreateFile(s.t.Context(), store.File{ID: id, Tenant: tenant,
		Purpose: "batch_output", BlobKey: fileKey(id), CreatedAt: s.clock.now()})
	if err != nil {
		s.t.Fatal(err)
	}
}

func TestSweepRemovesWhatCrashesLeave(t *testing.T) {
	s := newService(t, func(c *Config, _ *Deps) {
		c.UploadTimeout, c.OrphanAfter = 24*time.Hour, time.Hour
	})
	s.asOfNow()
	var kept []string
	keep := func(keys ...string) { kept = append(kept, keys...) }

	// Inputs: with a record, of another tenant, and without a record but read by a running batch.
	input := s.upload(line("a"))
	keep("files/"+input, "files/"+input+".index")
	s.putBlob("files/file-other")
	s.createFile("file-other", "other")
	keep("files/file-other")
	read := s.upload(line("b"))
	s.reading(read, store.InProgress)
	unread := s.upload(line("c"))
	over := s.reading(unread, store.InProgress)
	for _, id := range []string{read, unread} {
		s.do("DELETE", "/v1/files/"+id, nil).ok()
	}
	s.endLost(over.ID)
	keep("files/"+read, "files/"+read+".index")
	s.putBlob("files/file-lost")
	s.putBlob("files/file-lost.index")

	// Results: being written, kept, and of a batch that ended without them.
	s.withResults(input, "file-output", "file-error")
	done := s.withResults(input, "file-kept", "file-gone")
	for _, id := range []string{"file-output", "file-error", "file-kept", "file-gone"} {
		s.putBlob("files/" + id)
	}
	s.createFile("file-kept", DefaultTenant)
	s.endLost(done.ID)
	keep("files/file-output", "files/file-error", "files/file-kept")

	// Parts, with and without records.
	pending, cancelled := s.createUpload(9, ""), s.createUpload(9, "")
	part := s.addPart(pending, "xyz")
	s.post("/v1/uploads/"+cancelled+"/cancel", "").ok()
	for _, id := range []string{pending, cancelled, "upload_gone"} {
		s.putBlob("uploads/" + id + "/part_lost")
	}
	keep("uploads/"+pending+"/"+part, "uploads/"+pending+"/part_lost")

	// Orders of lines.
	working := s.reading(input, store.InProgress)
	for _, id := range []string{working.ID, over.ID, "batch_gone"} {
		s.putBlob("batches/" + id + "/order")
	}
	keep("batches/" + working.ID + "/order")

	before := s.stored()
	s.clock.advance(time.Hour - time.Minute)
	s.sweepOrphans()
	if got := s.stored(); len(got) != len(before) {
		t.Errorf("got %q before the hour has passed, want all of %q", got, before)
	}
	s.clock.advance(2 * time.Minute)
	s.sweepOrphans()
	s.wantStored(kept...)
}

// aroundListing calls functions before and after the running batches are listed.
type aroundListing struct {
	Metadata
	before, after func()
}

func (m *aroundListing) ChangedBatches(
	ctx context.Context, after store.Cursor, limit int,
) ([]string, store.Cursor, error) {
	m.before()
	defer m.after()
	return m.Metadata.ChangedBatches(ctx, after, limit)
}

func TestSweepRacesWithBatches(t *testing.T) {
	meta := &aroundListing{}
	s := newService(t, func(_ *Config, d *Deps) {
		meta.Metadata = d.Metadata
		d.Metadata = meta
	})
	s.asOfNow()
	input := s.upload(line("a"))
	ending := s.withResults(s.upload(line("b")), "file-output", "file-error")
	s.putBlob("files/file-output") // without a record, so that batches are listed
	kept := s.stored()
	var created store.Batch
	meta.before = func() { // the end of a batch
		s.createFile("file-output", DefaultTenant)
		s.endLost(ending.ID)
	}
	meta.after = func() { // a creation, whose input is deleted at once
		created = s.reading(input, store.Validating)
		if _, err := s.meta.DeleteFile(t.Context(), DefaultTenant, input); err != nil {
			t.Error(err)
		}
	}
	s.clock.advance(25 * time.Hour)
	s.sweepOrphans()
	if created.ID == "" {
		t.Fatal("the batches were not listed")
	}
	if got := s.stored(); !slices.Equal(got, kept) {
		t.Errorf("got %q, want all of %q", got, kept)
	}
}

func TestSweepOfOrphansGoesOn(t *testing.T) {
	broken := errors.New("disk failure")
	blobs := &failingDeletes{err: broken}
	s := newService(t, func(_ *Config, d *Deps) {
		blobs.Blobs = d.Blobs
		d.Blobs = blobs
	})
	s.asOfNow()
	s.putBlob("files/file-lost")
	s.putBlob("uploads/upload_lost/part")
	s.clock.advance(25 * time.Hour)
	if err := s.server.sweepOrphans(t.Context()); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	blobs.err = nil
	s.sweepOrphans()
	s.nothingStored()
}

func TestRunLooksForOrphansAtItsStart(t *testing.T) {
	for after, stays := range map[time.Duration]int{time.Hour: 0, 0: 1} {
		s := newService(t, func(c *Config, _ *Deps) { c.OrphanAfter = after })
		s.asOfNow()
		s.putBlob("files/file-lost")
		s.clock.advance(25 * time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.server.Run(ctx) }()
		s.eventually("the first sweep", func() bool { return len(s.stored()) == stays })
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if got := len(s.stored()); got != stays {
			t.Errorf("orphan_after %v: got %d blobs, want %d", after, got, stays)
		}
	}
}

// Blobs that no record refers to stay while the records may be older than they are.
func TestOrphansStayWhileTheRecordsAreOlder(t *testing.T) {
	older := store.ErrOlder
	s := newService(t, func(_ *Config, d *Deps) {
		d.Older = func(context.Context) error { return older }
	})
	s.asOfNow()
	s.putBlob("files/file-newer")
	s.putBlob("uploads/upload_newer/part")
	s.clock.advance(25 * time.Hour)
	if err := s.server.sweepOrphans(t.Context()); !errors.Is(err, store.ErrOlder) {
		t.Errorf("got %v, want %v", err, store.ErrOlder)
	}
	if got := len(s.stored()); got != 2 {
		t.Errorf("%d blobs are left, want 2", got)
	}
	older = nil
	s.sweepOrphans()
	s.nothingStored()
}
