package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

// countingStore counts the reads of event streams.
type countingStore struct {
	Metadata
	board ProgressBoard
	times atomic.Int64
}

func (a *countingStore) Batch(ctx context.Context, tenant, id string) (store.Batch, error) {
	a.times.Add(1)
	return a.Metadata.Batch(ctx, tenant, id)
}

func (a *countingStore) ProgressPosts(
	ctx context.Context, batches []string,
) (map[string][]store.ProgressPost, error) {
	a.times.Add(1)
	return a.board.ProgressPosts(ctx, batches)
}

func (a *countingStore) SumDone(
	ctx context.Context, chunks map[string][]int,
) (map[string]store.DoneChunks, error) {
	a.times.Add(1)
	return a.Metadata.SumDone(ctx, chunks)
}

func (a *countingStore) ChangedBatches(
	ctx context.Context, after store.Cursor, limit int,
) ([]string, store.Cursor, error) {
	a.times.Add(1)
	return a.Metadata.ChangedBatches(ctx, after, limit)
}

// discardResponse discards a stream.
type discardResponse struct{ header http.Header }

func (n discardResponse) Header() http.Header         { return n.header }
func (n discardResponse) Write(p []byte) (int, error) { return len(p), nil }
func (n discardResponse) WriteHeader(int)             {}
func (n discardResponse) Flush()                      {}

// openStreams opens streams, spread over the batches; stop ends them.
func (s *service) openStreams(streams int, ids []string) (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var running sync.WaitGroup
	for i := range streams {
		r := httptest.NewRequestWithContext(ctx, "GET", "/v1/batches/"+ids[i%len(ids)]+"/events",
			nil)
		running.Go(func() { s.server.Handler().ServeHTTP(discardResponse{http.Header{}}, r) })
	}
	return func() { cancel(); running.Wait() }
}

// BenchmarkEventStreams holds a thousand streams open; an operation is one second.
func BenchmarkEventStreams(b *testing.B) {
	for _, batches := range []int{1, 1000} {
		b.Run(fmt.Sprintf("batches=%d", batches), func(b *testing.B) {
			var meta *countingStore
			s := newService(b, func(_ *Config, d *Deps) {
				meta = &countingStore{Metadata: d.Metadata, board: d.Progress}
				d.Metadata, d.Progress = meta, meta
			})
			input := s.upload(line("a"))
			ids := make([]string, batches)
			for i := range ids {
				ids[i] = s.reading(input, store.InProgress).ID
			}
			stop := s.openStreams(1000, ids)
			defer stop()
			time.Sleep(time.Second) // until all have started
			meta.times.Store(0)
			for b.Loop() {
				time.Sleep(time.Second)
			}
			b.ReportMetric(float64(meta.times.Load())/b.Elapsed().Seconds(), "reads/s")
		})
	}
}
