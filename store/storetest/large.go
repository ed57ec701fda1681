package storetest

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/tidefill/tidefill/store"
)

// largeResult returns readers of a random result, the same one each time.
func largeResult(size int, seed uint64) func() io.Reader {
	return func() io.Reader {
		random := rand.New(rand.NewPCG(seed, seed))
		b := make([]byte, size)
		for i := range b {
			b[i] = ' ' + byte(random.UintN(90))
		}
		b[size-1] = '\n'
		return bytes.NewReader(b)
	}
}

func journalsLarge(t *testing.T, here, there store.Journals) {
	ctx := t.Context()
	c := newCommits()
	j, _ := openJournal(t, here, 1, c)
	sizes := []int{store.MaxReadResult - 1, store.MaxReadResult, store.MaxReadResult + 1, 3 << 20,
		1}
	want := map[uint32][]byte{}
	for i, size := range sizes {
		small, large := newRecord(2*i), newRecord(2*i+1)
		want[small.Line] = bytes.Clone(small.Result)
		small.Result, small.More = small.Result[:3], [][]byte{small.Result[3:4], nil,
			small.Result[4:]}
		must(t, j.Append(t.Context(), small))
		large.Result = nil
		result := largeResult(size, uint64(i))
		want[large.Line] = got(io.ReadAll(result()))(t)
		must(t, j.AppendFrom(ctx, large, int64(size), result))
		if c.records() <= i { // the earlier ones are durable, and so is this one
			t.Errorf("AppendFrom returned before its record was committed")
		}
	}
	must(t, j.Close(t.Context()))
	wantEqual(t, "committed records", c.records(), 2*len(sizes))
	if c.sum.Bytes == 0 || c.sum.Bytes > 1000 {
		t.Errorf("committed %d bytes, want those of the small records", c.sum.Bytes)
	}
	for name, js := range map[string]store.Journals{"here": here, "there": there} {
		found := map[uint32]bool{}
		results := got(js.Results(ctx, theChunk))(t)
		must(t, js.Read(ctx, theChunk, func(r store.Record, at store.Location) error {
			var copied bytes.Buffer
			must(t, results.Copy(t.Context(), &copied, at))
			result := want[r.Line]
			if !bytes.Equal(copied.Bytes(), result) {
				t.Errorf("%s: line %d: copied %d bytes, want the %d of its result", name, r.Line,
					copied.Len(), len(result))
			}
			if len(result) <= store.MaxReadResult && !bytes.Equal(r.Result, result) || len(
				result) > store.MaxReadResult && len(r.Result) > 0 {
				t.Errorf("%s: line %d: read %d bytes of a result of %d", name, r.Line, len(
					r.Result), len(result))
			}
			found[r.Line] = true
			return nil
		}))
		must(t, results.Close())
		wantEqual(t, name+": lines", len(found), len(want))
	}
	_, replayed := openJournal(t, there, 2, newCommits())
	wantEqual(t, "replayed", len(replayed), len(want))
}

func journalsLargeFenced(t *testing.T, here, there store.Journals) {
	c := newCommits()
	late, _ := openJournal(t, here, 1, c)
	openJournal(t, there, 2, newCommits())
	r := newRecord(1)
	wantErr(t, "append a large record behind a fence", late.AppendFrom(t.Context(), r, 1<<20,
		largeResult(1<<20, 1)), store.ErrFenced)
	c.await(t, "the report of the fence", func(sum store.Commit, errs []error) bool {
		return len(errs) == 1 && sum.Records == 0
	})
	if records := readJournal(t, there); len(records) != 0 {
		t.Errorf("read %d records from behind a fence", len(records))
	}
}
