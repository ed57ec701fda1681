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

// asked counts the reads that event streams make.
type asked struct {
	Metadata
	board Progress
	times atomic.Int64
}

func (a *asked) Batch(ctx context.Context, tenant, id string) (store.Batch, error) {
	a.times.Add(1)
	return a.Metadata.Batch(ctx, tenant, id)
}

func (a *asked) ProgressPosts(
	ctx context.Context, batches []string,
) (map[string][]store.ProgressPost, error) {
	a.times.Add(1)
	return a.board.ProgressPosts(ctx, batches)
}

func (a *asked) SumDone(
	ctx context.Context, chunks map[string][]int,
) (map[string]store.DoneChunks, error) {
	a.times.Add(1)
	return a.Metadata.SumDone(ctx, chunks)
}

func (a *asked) ChangedBatches(
	ctx context.Context, after store.Cursor, limit int,
) ([]string, store.Cursor, error) {
	a.times.Add(1)
	return a.Metadata.ChangedBatches(ctx, after, limit)
}

// nobody reads a stream.
type nobody struct{ header http.Header }

func (n nobody) Header() http.Header         { return n.header }
func (n nobody) Write(p []byte) (int, error) { return len(p), nil }
func (n nobody) WriteHeader(int)             {}
func (n nobody) Flush()                      {}

// openStreams opens streams, in turn to each of the batches; stop ends them.
func (s *service) openStreams(streams int, ids []string) (stop func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	var running sync.WaitGroup
	for i := range streams {
		r := httptest.NewRequestWithContext(ctx, "GET", "/v1/batches/"+ids[i%len(ids)]+"/events",
			nil)
		running.Go(func() { s.server.Handler().ServeHTTP(nobody{http.Header{}}, r) })
	}
	return func() { cancel(); running.Wait() }
}

// BenchmarkEventStreams keeps a thousand streams open; an operation is a second of that.
func BenchmarkEventStreams(b *testing.B) {
	for _, batches := range []int{1, 1000} {
		b.Run(fmt.Sprintf("batches=%d", batches), func(b *testing.B) {
			var meta *asked
			s := newService(b, func(_ *Config, d *Deps) {
				meta = &asked{Metadata: d.Metadata, board: d.Progress}
				d.Metadata, d.Progress = meta, meta
			})
			input := s.upload(line("a"))
			ids := make([]string, batches)
			for i := range ids {
				ids[i] = s.reading(input, store.InProgress).ID
			}
			stop := s.openStreams(1000, ids)
			defer stop()
			time.Sleep(time.Second) // until all of them have begun
			meta.times.Store(0)
			for b.Loop() {
				time.Sleep(time.Second)
			}
			b.ReportMetric(float64(meta.times.Load())/b.Elapsed().Seconds(), "reads/s")
		})
	}
}
