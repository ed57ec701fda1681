package s3_test

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	servers "github.com/tidefill/tidefill/internal/testservers/s3"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/s3"
	"github.com/tidefill/tidefill/store/segments"
	"github.com/tidefill/tidefill/store/segments/registrytest"
)

// BenchmarkRequests has lines of 1 KiB end at a rate for ten seconds, 500 in each of 8 chunks
// at a time, then reads all results as the end of a batch does, writes the output and removes the
// journals. It reports requests for 1,000 lines by kind, with the default options. Run it with
// -benchtime 1x.
func BenchmarkRequests(b *testing.B) {
	for _, rate := range []int{10, 100, 1000, 5000} {
		b.Run(fmt.Sprintf("lines/s=%d", rate), func(b *testing.B) {
			for b.Loop() {
				countRequests(b, rate, 10*time.Second)
			}
		})
	}
}

func countRequests(b *testing.B, rate int, span time.Duration) {
	var mu sync.Mutex
	requests := map[string]float64{}
	bucket, err := s3.Open(b.Context(), config(b, servers.Start(b).URL), s3.Options{
		Observe: func(name string, _ time.Duration, _ error) {
			mu.Lock()
			defer mu.Unlock()
			requests[name]++
		}})
	if err != nil {
		b.Fatal(err)
	}
	defer bucket.Close()
	js, err := segments.Open(b.Context(), bucket, registrytest.NewMemory(time.Now),
		segments.Options{SweepAge: time.Nanosecond, DeleteAfter: time.Nanosecond, DeleteEvery: -1})
	if err != nil {
		b.Fatal(err)
	}
	defer js.Close()

	chunks := endLines(b, js, rate, span)
	lines := copyResults(b, js, bucket.Blobs(), chunks)
	if err := js.Remove(b.Context(), "batch_1"); err != nil {
		b.Fatal(err)
	}
	if _, err := js.DeleteQueued(b.Context()); err != nil {
		b.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, name := range []string{"put", "get", "part", "delete"} {
		b.ReportMetric(1000*requests[name]/float64(lines), name+"s/1000_lines")
	}
}

// endLines appends lines at a rate, and returns the number of chunks.
func endLines(b *testing.B, js *segments.Journals, rate int, span time.Duration) (chunks int) {
	const active, each = 8, 500
	type writing struct {
		store.Journal
		lines int
	}
	open := make([]*writing, active)
	r := store.Record{Result: append(bytes.Repeat([]byte("r"), 1023), '\n')}
	start := time.Now()
	for line := 0; time.Since(start) < span; line++ {
		<-time.After(time.Until(start.Add(time.Duration(line) * time.Second /
			time.Duration(rate))))
		w := open[line%active]
		if w == nil {
			j, err := js.Open(b.Context(), store.ChunkID{Batch: "batch_1", Index: chunks}, 1,
				func(store.Record) {}, func(store.Commit) {})
			if err != nil {
				b.Fatal(err)
			}
			w = &writing{Journal: j}
			open[line%active] = w
			chunks++
		}
		r.Line = uint32(line)
		if err := w.Append(b.Context(), r); err != nil {
			b.Fatal(err)
		}
		if w.lines++; w.lines == each {
			open[line%active] = nil
			go w.Close(b.Context())
		}
	}
	for _, w := range open {
		if w != nil {
			if err := w.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
	return chunks
}

// copyResults reads the results of all chunks into a blob, and returns their number.
func copyResults(b *testing.B, js *segments.Journals, blobs store.Blobs, chunks int) (lines int) {
	out, err := blobs.Create(b.Context(), "files/output")
	if err != nil {
		b.Fatal(err)
	}
	defer out.Abort()
	at := make([][]store.Location, chunks)
	for c := range chunks {
		err := js.Read(b.Context(), store.ChunkID{Batch: "batch_1", Index: c},
			func(_ store.Record, l store.Location) error {
				at[c] = append(at[c], l)
				return nil
			})
		if err != nil {
			b.Fatal(err)
		}
		lines += len(at[c])
	}
	for c := range chunks {
		results, err := js.Results(b.Context(), store.ChunkID{Batch: "batch_1", Index: c})
		if err != nil {
			b.Fatal(err)
		}
		for _, l := range at[c] {
			if err := results.Copy(b.Context(), io.Writer(out), l); err != nil {
				b.Fatal(err)
			}
		}
		if err := results.Close(); err != nil {
			b.Fatal(err)
		}
	}
	if err := out.Commit(b.Context()); err != nil {
		b.Fatal(err)
	}
	return lines
}
