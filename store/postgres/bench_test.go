package postgres_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	testpostgres "github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/postgres"
	"github.com/tidefill/tidefill/store/segments"
)

// BenchmarkCalls measures the calls that dispatchers make most, by one caller.
func BenchmarkCalls(b *testing.B) {
	s := testpostgres.Shared(b)
	for _, pooled := range []bool{false, true} {
		address, name := s.URL(s.NewDatabase(b)), "direct"
		if pooled {
			name = "PgBouncer"
			address = testpostgres.StartBouncer(b, s).URL(s.NewDatabase(b))
		}
		b.Run(name, func(b *testing.B) { benchmarkCalls(b, open(b, address, postgres.Options{})) })
	}
}

func benchmarkCalls(b *testing.B, db *postgres.DB) {
	ctx := b.Context()
	o, err := db.Register(ctx, "n", time.Hour)
	must(b, err)
	batches := 0
	add := func(chunks int) (id string) {
		id = fmt.Sprint("b", batches)
		batches++
		must(b, db.CreateBatch(ctx, batch(id)))
		list := make([]store.Chunk, chunks)
		for i := range list {
			list[i] = store.Chunk{ChunkID: store.ChunkID{Batch: id, Index: i}, Model: "m",
				First: 500 * i, Count: 500}
		}
		must(b, db.AddChunks(ctx, id, list))
		return id
	}
	const size = 100
	b.Run("ClaimChunks", func(b *testing.B) {
		var id string
		var held []int
		for n := 0; b.Loop(); n++ {
			if n%size == 0 {
				b.StopTimer()
				id, held = add(size), nil
				b.StartTimer()
			}
			claimed, err := db.ClaimChunks(ctx, o, id, "m", 1, held)
			if err != nil || len(claimed) != 1 {
				b.Fatalf("claimed %v, %v", claimed, err)
			}
			held = append(held, claimed[0].Index)
		}
	})
	b.Run("FinishChunks", func(b *testing.B) {
		var claimed []store.Chunk
		for b.Loop() {
			if len(claimed) == 0 {
				b.StopTimer()
				claimed, err = db.ClaimChunks(ctx, o, add(size), "m", size, nil)
				must(b, err)
				b.StartTimer()
			}
			must(b, db.FinishChunks(ctx, o, claimed[0]))
			claimed = claimed[1:]
		}
	})
	b.Run("PostProgress of 20 batches", func(b *testing.B) {
		posts := map[string]store.ProgressPost{}
		for range 20 {
			posts[add(1)] = store.ProgressPost{Chunks: make([]store.ChunkProgress, 10)}
		}
		for b.Loop() {
			must(b, db.PostProgress(ctx, o, posts))
		}
	})
	b.Run("Renew", func(b *testing.B) {
		for b.Loop() {
			must(b, db.Renew(ctx, o, time.Hour))
		}
	})
	b.Run("ChangedBatches", func(b *testing.B) {
		_, cursor, err := db.ChangedBatches(ctx, "", 1)
		must(b, err)
		for b.Loop() {
			_, cursor, err = db.ChangedBatches(ctx, cursor, 100)
			must(b, err)
		}
	})
	b.Run("CreateBatch", func(b *testing.B) {
		for n := 0; b.Loop(); n++ {
			must(b, db.CreateBatch(ctx, batch(fmt.Sprint("new", batches, "-", n))))
		}
		batches++
	})
	b.Run("Segments.Register 20 chunks", func(b *testing.B) {
		register, id := db.Segments(), fmt.Sprint("s", batches)
		batches++
		process, stamp, err := register.Enroll(ctx)
		must(b, err)
		var parts []segments.Part
		for i := range 20 {
			chunk := store.ChunkID{Batch: id, Index: i}
			_, err := register.Fence(ctx, segments.Fence{Chunk: chunk, Epoch: 1})
			must(b, err)
			parts = append(parts, segments.Part{Chunk: chunk, Epoch: 1, Offset: int64(i),
				Length: 1})
		}
		for n := int64(0); b.Loop(); n++ {
			_, err := register.Register(ctx, segments.Segment{Bytes: 20, Parts: parts,
				Key: segments.Key{Stamp: stamp, Process: process, Count: n}})
			must(b, err)
		}
	})
}

// BenchmarkWithManyBatches measures listings with a million batches, and reports the slowest of a
// hundred pages.
func BenchmarkWithManyBatches(b *testing.B) {
	const batches = 1_000_000
	s := testpostgres.Shared(b)
	database := s.NewDatabase(b)
	db := open(b, s.URL(database), postgres.Options{})
	began := time.Now()
	fill(b, s, database, batches)
	b.Logf("filled in %v", time.Since(began).Round(time.Second))
	ctx := b.Context()
	middle := time.Unix(batches/2, 0)
	after := fmt.Sprint("batch_", batches/2)
	for _, test := range []struct {
		name string
		q    store.BatchQuery
	}{
		{"newest", store.BatchQuery{}},
		{"deep", store.BatchQuery{After: after}},
		{"deadline", store.BatchQuery{Order: store.ByDeadline, Ascending: true}},
		{"undated", store.BatchQuery{Order: store.ByDeadline, After: after}},
		{"state", store.BatchQuery{States: []store.State{store.InProgress}}},
		{"absent states", store.BatchQuery{States: []store.State{store.Failed, store.Expired}}},
		{"created between", store.BatchQuery{CreatedAfter: middle,
			CreatedBefore: middle.Add(time.Hour)}},
	} {
		b.Run("page of 20/"+test.name, func(b *testing.B) {
			test.q.Limit = 20
			var times []time.Duration
			for b.Loop() {
				began := time.Now()
				_, err := db.ListBatchIDs(ctx, "t", test.q)
				must(b, err)
				times = append(times, time.Since(began))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
	b.Run("live batches", func(b *testing.B) {
		for b.Loop() {
			ids, _, err := db.ChangedBatches(ctx, "", 1)
			if err != nil || len(ids) != batches/1000 {
				b.Fatalf("got %d live batches, %v", len(ids), err)
			}
		}
	})
	b.Run("lines left", func(b *testing.B) {
		for b.Loop() {
			_, err := db.LinesLeft(ctx)
			must(b, err)
		}
	})
}
