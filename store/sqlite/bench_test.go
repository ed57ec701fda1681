package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/sqlite"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// createBatches creates n batches of one tenant in one transaction, one in eleven in progress.
func createBatches(b *testing.B, path string, n int) {
	db, err := sqlite.Open(b.Context(), path, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	sqlite.CreateAll(b, db, func(yield func(store.Batch) bool) {
		for i := range n {
			batch := store.Batch{
				ID: fmt.Sprintf("batch_%06d", i), Tenant: "t", State: store.Completed,
				Endpoint: "/v1/chat/completions", Window: "24h",
				CreatedAt: start.Add(time.Duration(i) * time.Second), CompletedAt: start.Add(
					time.Duration(i) * time.Second),
				Models:   []store.ModelLines{{Model: fmt.Sprint("model-", i%3), Lines: 10}},
				Metadata: map[string]string{"run": fmt.Sprint(i / 100), "team": fmt.Sprint(i % 5)},
				Inputs: []store.Input{
					{FileID: "file-1", BlobKey: "files/1", IndexKey: "files/1.index", Lines: 10}},
				Outputs: []store.Output{
					{Input: -1, OutputID: "file-2", ErrorID: "file-3", HasOutput: true}},
			}
			if i%2 == 0 {
				batch.Deadline = batch.CreatedAt.Add(24 * time.Hour)
			}
			if i%11 == 0 {
				batch.State = store.InProgress
			}
			if i == n/2 {
				batch.Models[0].Model = "rare"
			}
			if !yield(batch) {
				return
			}
		}
	})
}

func BenchmarkWithManyBatches(b *testing.B) {
	path := filepath.Join(b.TempDir(), "tidefill.db")
	createBatches(b, path, 110_000)
	b.Run("open and load live batches", func(b *testing.B) {
		for b.Loop() {
			db, err := sqlite.Open(b.Context(), path, sqlite.Options{})
			if err != nil {
				b.Fatal(err)
			}
			ids, _, err := db.ChangedBatches(b.Context(), "", 100)
			if err != nil || len(ids) != 10_000 {
				b.Fatalf("got %d live batches, %v", len(ids), err)
			}
			for _, id := range ids {
				if _, err := db.Batch(b.Context(), "", id); err != nil {
					b.Fatal(err)
				}
			}
			if err := db.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	db := open(b, path, time.Now)
	middle := start.Add(55_000 * time.Second)
	for _, test := range []struct {
		name string
		q    store.BatchQuery
	}{
		{"newest", store.BatchQuery{}},
		{"deep", store.BatchQuery{After: "batch_050000"}},
		{"deadline", store.BatchQuery{Order: store.ByDeadline, Ascending: true}},
		{"undated", store.BatchQuery{Order: store.ByDeadline, After: "batch_050001"}},
		{"state", store.BatchQuery{States: []store.State{store.InProgress}}},
		{"absent states", store.BatchQuery{States: []store.State{store.Failed, store.Expired}}},
		{"model", store.BatchQuery{Model: "model-1", After: "batch_050000"}},
		{"rare model", store.BatchQuery{Model: "rare"}},
		{"metadata value", store.BatchQuery{MetadataKey: "run", MetadataValue: "300",
			Order: store.ByDeadline}},
		{"metadata key", store.BatchQuery{MetadataKey: "team"}},
		{"model and metadata", store.BatchQuery{Model: "model-1", MetadataKey: "run",
			MetadataValue: "300"}},
		{"model and disjoint metadata",
			store.BatchQuery{Model: "rare", MetadataKey: "team", MetadataValue: "1"}},
		{"everything", store.BatchQuery{Model: "model-1", MetadataKey: "team", MetadataValue: "1",
			States:       []store.State{store.Completed},
			CreatedAfter: middle, CreatedBefore: middle.Add(time.Hour), DeadlineAfter: middle,
			Order: store.ByDeadline}},
		{"created by deadline", store.BatchQuery{CreatedAfter: middle, CreatedBefore: middle.Add(
			time.Minute), Order: store.ByDeadline}},
	} {
		b.Run("page of 20/"+test.name, func(b *testing.B) {
			test.q.Limit = 20
			for b.Loop() {
				if _, err := db.ListBatchIDs(b.Context(), "t", test.q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("page of 100/newest", func(b *testing.B) {
		for b.Loop() {
			if _, err := db.ListBatchIDs(b.Context(), "t", store.BatchQuery{
				Limit: 100}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkClaimOneChunk(b *testing.B) {
	db := open(b, filepath.Join(b.TempDir(), "tidefill.db"), time.Now)
	ctx := b.Context()
	o, err := db.Register(ctx, "n", time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	const size = 100
	var held []int
	for n := 0; b.Loop(); n++ {
		batch := fmt.Sprint("b", n/size)
		if n%size == 0 {
			b.StopTimer()
			chunks := make([]store.Chunk, size)
			for i := range chunks {
				chunks[i] = store.Chunk{ChunkID: store.ChunkID{Batch: batch, Index: i},
					Model: "m", First: i * 500, Count: 500}
			}
			if err := db.CreateBatch(ctx,
				store.Batch{ID: batch, State: store.InProgress}); err != nil {
				b.Fatal(err)
			}
			if err := db.AddChunks(ctx, batch, chunks); err != nil {
				b.Fatal(err)
			}
			held = held[:0]
			b.StartTimer()
		}
		claimed, err := db.ClaimChunks(ctx, o, batch, "m", 1, held)
		if err != nil || len(claimed) != 1 {
			b.Fatalf("claimed %v, %v", claimed, err)
		}
		held = append(held, claimed[0].Index)
	}
}

// BenchmarkBatchLife takes a batch through its states, with one chunk.
func BenchmarkBatchLife(b *testing.B) {
	db := open(b, filepath.Join(b.TempDir(), "tidefill.db"), time.Now)
	ctx := b.Context()
	o, err := db.Register(ctx, "n", time.Hour)
	if err != nil {
		b.Fatal(err)
	}
	for n := 0; b.Loop(); n++ {
		id := fmt.Sprint("b", n)
		must := func(err error) {
			if err != nil {
				b.Fatal(err)
			}
		}
		must(db.CreateBatch(ctx, store.Batch{ID: id, Tenant: "t", State: store.Validating,
			CreatedAt: time.Now(),
			Models:    []store.ModelLines{{Model: "m", Lines: 100}}, Metadata: map[string]string{
				"run": "1"}}))
		must(db.AddChunks(ctx, id, []store.Chunk{
			{ChunkID: store.ChunkID{Batch: id}, Model: "m", Count: 100}}))
		for _, state := range []store.State{store.InProgress, store.Finalizing, store.Completed} {
			_, err := store.Modify(ctx, db, "t", id, func(b *store.Batch) error {
				b.State = state
				return nil
			})
			must(err)
			if state == store.InProgress {
				claimed, err := db.ClaimChunks(ctx, o, id, "m", 1, nil)
				must(err)
				must(db.FinishChunks(ctx, o, claimed[0]))
			}
		}
	}
}
