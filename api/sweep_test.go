package api

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

func (s *service) sweep() {
	s.t.Helper()
	if err := s.server.sweep(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func TestSweepRemovesExpiredFiles(t *testing.T) {
	s := newService(t)
	for range sweepPage + 3 {
		s.upload(line("a"))
	}
	used := s.upload(line("used"))
	b := s.reading(used, store.InProgress)
	kept := s.postForm("/v1/files", field{name: "purpose", value: "evals"},
		field{name: "file", filename: "a", value: "x"}).ok()["id"].(string)
	s.clock.advance(30*24*time.Hour - time.Second)
	s.sweep()
	if got := len(s.stored()); got != 2*(sweepPage+4)+1 {
		t.Errorf("got %d blobs a second before the expiry, want all", got)
	}
	s.clock.advance(time.Second)
	s.get("/v1/files/"+used).refused(404, "id", "")
	s.sweep()
	if got := len(s.stored()); got != 3 {
		t.Errorf(
			"got %d blobs, want the two that the batch %s reads and the one that does not expire",
			got, b.ID)
	}
	s.get("/v1/files/" + kept + "/content").isWhole("x")
	if left, err := s.meta.ExpiredFiles(t.Context(), 10); err != nil || len(left) > 0 {
		t.Errorf("got rows %v left, %v", left, err)
	}
}

func (a answer) isWhole(want string) {
	a.t.Helper()
	if a.status != 200 || a.body != want {
		a.t.Errorf("got %d %q, want 200 %q", a.status, a.body, want)
	}
}

func TestSweepForgetsOldBatches(t *testing.T) {
	s := newService(t, func(c *Config, _ *Deps) { c.BatchRetention = 40 * 24 * time.Hour })
	id := s.upload(line("a"))
	old, live := s.reading(id, store.Completed), s.reading(id, store.InProgress)
	s.clock.advance(39 * 24 * time.Hour)
	young := s.reading(s.upload(line("b")), store.Completed)
	s.clock.advance(2 * 24 * time.Hour)
	s.sweep()
	for b, want := range map[*store.Batch]error{&old: store.ErrNotFound, &live: nil, &young: nil} {
		if _, err := s.meta.Batch(t.Context(), DefaultTenant, b.ID); !errors.Is(err, want) {
			t.Errorf("%s batch: got %v, want %v", b.State, err, want)
		}
	}
}

func TestSweepTriesAgain(t *testing.T) {
	broken := errors.New("disk failure")
	var blobs *failingDeletes
	s := newService(t, func(_ *Config, d *Deps) {
		blobs = &failingDeletes{d.Blobs, broken}
		d.Blobs = blobs
	})
	s.upload(line("a"))
	s.clock.advance(31 * 24 * time.Hour)
	if err := s.server.sweep(t.Context()); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	blobs.err = nil
	s.sweep()
	s.nothingStored()
}

// failingDeletes fails to delete while it has an error.
type failingDeletes struct {
	Blobs
	err error
}

func (b *failingDeletes) Delete(ctx context.Context, key string) error {
	if b.err != nil {
		return b.err
	}
	return b.Blobs.Delete(ctx, key)
}

func TestRunEndsWithItsContext(t *testing.T) {
	s := newService(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.server.Run(ctx); err != nil {
		t.Errorf("got %v", err)
	}
}

func TestSweepForgetsUploads(t *testing.T) {
	s := newService(t, func(c *Config, _ *Deps) { c.IdempotencyRetention = 48 * time.Hour })
	for range sweepPage + 1 {
		s.post("/v1/uploads/"+s.createUpload(9, "")+"/cancel", "").ok()
	}
	body := `{"filename":"in.jsonl","purpose":"batch","mime_type":"application/jsonl","bytes":9}`
	keyed := s.post("/v1/uploads", body, "Idempotency-Key", "k").ok()["id"].(string)
	s.addPart(keyed, "xyz")
	s.clock.advance(48 * time.Hour)
	s.sweep()
	if u, err := s.meta.Upload(t.Context(), DefaultTenant, keyed); err != nil ||
		u.State != store.UploadExpired {
		t.Errorf("got upload %v, %v while its key may be used again", u, err)
	}
	s.clock.advance(time.Hour + time.Second)
	s.sweep()
	if n, err := s.meta.PurgeUploads(t.Context(), s.clock.now(), 10); err != nil || n > 0 {
		t.Errorf("got %d uploads left, %v", n, err)
	}
	s.nothingStored()
}

func TestNothingExpiresByATimeThatIsNotConfirmed(t *testing.T) {
	expiry := &clock{}
	s := newService(t, func(c *Config, d *Deps) {
		c.BatchRetention = 24 * time.Hour
		d.Expiry = expiry.now
	})
	s.asOfNow()
	expiry.at = s.clock.now()
	over := s.reading(s.upload(line("a")), store.Completed)
	s.putBlob("files/file-lost")
	s.clock.advance(365 * 24 * time.Hour) // the clock jumps
	s.sweepOrphans()
	before := s.stored()
	if err := s.server.sweepBatches(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.get("/v1/batches/" + over.ID).ok()
	if got := len(s.stored()); got != len(before) || got != 3 {
		t.Errorf("got %d blobs after the jump, want all 3", got)
	}
	expiry.advance(365 * 24 * time.Hour) // confirmed
	s.sweepOrphans()
	s.sweep()
	s.get("/v1/batches/"+over.ID).refused(404, "id", "")
	s.nothingStored()
}
