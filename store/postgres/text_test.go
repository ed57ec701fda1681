package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

// Names that users choose may have bytes that PostgreSQL can't store as text.
func TestAnyText(t *testing.T) {
	db, ctx := openNew(t, nil), t.Context()
	for _, name := range []string{"\x00", "\xff", `\x00`, `\x`, `\\x00`, "ü\x00"} {
		stored, fresh, err := db.Remember(ctx, "t", name, name, time.Hour)
		if err != nil || !fresh || stored != name {
			t.Errorf("remember %q: got %q, %v, %v", name, stored, fresh, err)
		}
		stored, fresh, err = db.Remember(ctx, "t", name, "again", time.Hour)
		if err != nil || fresh || stored != name {
			t.Errorf("remember %q again: got %q, %v, %v", name, stored, fresh, err)
		}
		if _, err := db.Batch(ctx, "t", name); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("load batch %q: %v", name, err)
		}
		if _, err := db.ListFiles(ctx, "t", store.FileQuery{Purpose: name}); err != nil {
			t.Errorf("list files of purpose %q: %v", name, err)
		}
		if _, err := db.ListBatchIDs(ctx, "t", store.BatchQuery{After: name}); !errors.Is(err,
			store.ErrBadCursor) {
			t.Errorf("list batches after %q: %v", name, err)
		}

		b := batch("b" + name)
		b.Models[0].Model, b.Metadata = name, map[string]string{name: name}
		must(t, db.CreateBatch(ctx, b))
		must(t, db.AddChunks(ctx, b.ID, []store.Chunk{{ChunkID: store.ChunkID{Batch: b.ID},
			Model: name, Count: 1}}))
		o, err := db.Register(ctx, "n"+name, time.Hour)
		must(t, err)
		chunks, err := db.ClaimChunks(ctx, o, b.ID, name, 1, nil)
		if err != nil || len(chunks) != 1 || chunks[0].Model != name {
			t.Errorf("claim chunks of model %q: got %+v, %v", name, chunks, err)
		}
		if _, others, err := db.Lead(ctx, o, []string{name}); err != nil || len(others) > 0 {
			t.Errorf("lead %q: got %v, %v", name, others, err)
		}
		leaders, err := db.Leaders(ctx, []string{name})
		if err != nil || leaders[name] != o.Node {
			t.Errorf("leaders of %q: got %q, %v", name, leaders, err)
		}
		page, err := db.ListBatchIDs(ctx, "t", store.BatchQuery{Model: name, MetadataKey: name})
		if err != nil || len(page.Items) != 1 || page.Items[0] != b.ID {
			t.Errorf("list batches of model %q: got %q, %v", name, page.Items, err)
		}
	}
}
