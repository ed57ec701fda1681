package disk

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/frame"
)

// BenchmarkAppend is the cost of a record from Append to durability, group commits included.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{500, 5 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := openStore(b, b.TempDir(), Options{})
			j, err := s.Journals().Open(b.Context(), chunk, 1, func(store.Record) {}, func(
				store.Commit) {
			})
			if err != nil {
				b.Fatal(err)
			}
			r := store.Record{Result: bytes.Repeat([]byte("x"), size)}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				r.Line++
				if err := j.Append(b.Context(), r); err != nil {
					b.Fatal(err)
				}
				if int(r.Line)*size%(1<<20) < size { // stay near what the disk takes, as answers do
					if err := j.Flush(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			}
			if err := j.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func BenchmarkScan(b *testing.B) {
	journal, _ := journalOf(b, 10_000)
	b.SetBytes(int64(len(journal)))
	for b.Loop() {
		s := frame.NewScanner(bytes.NewReader(journal), 0, int64(len(journal)))
		for s.Next() {
		}
	}
}
