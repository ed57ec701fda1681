package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// waitLimit limits the wait for what happens by itself within milliseconds.
const waitLimit = 20 * time.Second

// TestJournals runs the suite for [store.Journals]. open returns two views of one new, empty
// medium, as two processes have them, and closes them when the test ends.
func TestJournals(t *testing.T, open func(t *testing.T) (here, there store.Journals)) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, here, there store.Journals)
	}{
		{"journals store appended records", journalsKeep},
		{"journals declare their durability", journalsDurability},
		{"journals commit by themselves", journalsCommit},
		{"journals replay", journalsReplay},
		{"journals return the first record of a line", journalsDuplicates},
		{"journals fence lower epochs", func(t *testing.T, here, _ store.Journals) {
			journalsFence(t, here, here)
		}},
		{"journals fence other processes", journalsFence},
		{"journals accept concurrent appends", journalsRace},
		{"journals are claimed by others under load", journalsHandover},
		{"journals are listed and removed by batch", journalsRemove},
		{"ended contexts end waits for journals", journalsEndedContext},
		{"journals store results that are larger than memory", journalsLarge},
		{"journals fence large results", func(t *testing.T, here, there store.Journals) {
			journalsLargeFenced(t, here, there)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			here, there := open(t)
			test.run(t, here, there)
		})
	}
}

var theChunk = store.ChunkID{Batch: "batch_1", Index: 7}

func newRecord(line int) store.Record {
	result := fmt.Appendf(nil, "{\"custom_id\":\"line %d\"}\n", line)
	return store.Record{Line: uint32(line), Failed: line%3 == 0, Attempts: uint16(line%5 + 1),
		Usage: batchfile.Usage{InputTokens: int64(line), OutputTokens: 2,
			TotalTokens: int64(line) + 2, CachedTokens: 1, ReasoningTokens: 1 << 33},
		Result: result, Size: int64(len(result))}
}

// commits collects the commits that a journal reports.
type commits struct {
	mu   sync.Mutex
	sum  store.Commit
	errs []error
	news chan struct{}
}

func newCommits() *commits { return &commits{news: make(chan struct{}, 1)} }

func (c *commits) committed(n store.Commit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.Err != nil {
		c.errs = append(c.errs, n.Err)
	}
	c.sum.Records += n.Records
	c.sum.Completed += n.Completed
	c.sum.Failed += n.Failed
	c.sum.Bytes += n.Bytes
	c.sum.Usage.Add(n.Usage)
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// await waits until the commits meet a condition.
func (c *commits) await(t testing.TB, what string, done func(sum store.Commit, errs []error) bool) {
	t.Helper()
	timeout := time.After(waitLimit)
	for {
		c.mu.Lock()
		ok := done(c.sum, c.errs)
		c.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-c.news:
		case <-timeout:
			t.Fatalf("waited for %s for too long; commits: %+v, errors: %v", what, c.sum, c.errs)
		}
	}
}

func (c *commits) records() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sum.Records
}

func noReplay(t testing.TB) func(store.Record) {
	return func(r store.Record) { t.Errorf("replayed line %d from an empty journal", r.Line) }
}

func openJournal(
	t testing.TB, js store.Journals, epoch int64, c *commits,
) (store.Journal, []store.Record) {
	t.Helper()
	var replayed []store.Record
	j := got(js.Open(t.Context(), theChunk, epoch, func(r store.Record) {
		r.Result = slices.Clone(r.Result)
		replayed = append(replayed, r)
	}, c.committed))(t)
	return j, replayed
}

func readJournal(t testing.TB, js store.Journals) (records []store.Record) {
	t.Helper()
	var places []store.Location
	must(t, js.Read(t.Context(), theChunk, func(r store.Record, at store.Location) error {
		r.Result = slices.Clone(r.Result)
		records, places = append(records, r), append(places, at)
		return nil
	}))
	if len(records) > 0 {
		readResults(t, js, records, places)
	}
	return records
}

// readResults reads the results again at their locations, in an order that moves back and forth.
func readResults(t testing.TB, js store.Journals, records []store.Record, places []store.Location) {
	t.Helper()
	results := got(js.Results(t.Context(), theChunk))(t)
	defer func() { must(t, results.Close()) }()
	for i := range records {
		for _, k := range []int{i, len(records) - 1 - i} {
			var again bytes.Buffer
			must(t, results.Copy(t.Context(), &again, places[k]))
			want := records[k].Result
			if large := places[k].Length > store.MaxReadResult; again.Len() != int(
				places[k].Length) ||
				!large && again.String() != string(want) {
				t.Errorf("line %d: read %.100q at its location, want %.100q", records[k].Line,
					again.String(), want)
			}
		}
	}
}

func journalsKeep(t *testing.T, here, there store.Journals) {
	ctx := t.Context()
	if records := readJournal(t, here); len(records) != 0 {
		t.Errorf("read %v from a chunk without a journal", records)
	}
	c := newCommits()
	j := got(here.Open(ctx, theChunk, 1, noReplay(t), c.committed))(t)
	must(t, j.Flush(ctx)) // nothing
	var want []store.Record
	var sum store.Commit
	scratch := make([]byte, 0, 100)
	for line := range 10 {
		r := newRecord(line)
		want = append(want, r)
		sum.Usage.Add(r.Usage)
		sum.Bytes += int64(len(r.Result))
		scratch = append(scratch[:0], r.Result...)
		r.Result = scratch // is overwritten by the next one: Append copies
		must(t, j.Append(t.Context(), r))
	}
	empty := store.Record{Line: 1 << 31}
	must(t, j.Append(t.Context(), empty))
	must(t, j.Flush(ctx))
	empty.Result = []byte{}
	want = append(want, empty)
	sum.Records, sum.Completed, sum.Failed = 11, 7, 4
	c.await(t, "the commit", func(s store.Commit, _ []error) bool { return s.Records == 11 })
	wantEqual(t, "committed", c.sum, sum)
	normal := func(records []store.Record) []store.Record {
		for i := range records {
			records[i].Result = append([]byte{}, records[i].Result...)
		}
		return records
	}
	wantEqual(t, "read here", normal(readJournal(t, here)), want)
	wantEqual(t, "read there", normal(readJournal(t, there)), want)

	stop := errors.New("stop")
	err := here.Read(ctx, theChunk, func(store.Record, store.Location) error { return stop })
	wantErr(t, "read with an error", err, stop)
	must(t, j.Append(t.Context(), newRecord(11)))
	must(t, j.Close(t.Context()))
	if n := len(readJournal(t, there)); n != 12 {
		t.Errorf("read %d records after Close, want 12", n)
	}
	if err := j.Append(t.Context(), newRecord(12)); err == nil {
		t.Error("appended after Close")
	}
	must(t, j.Close(t.Context()))
}

func journalsDurability(t *testing.T, here, there store.Journals) {
	d := here.Durability()
	if d.Delay < 0 || d.Delay > waitLimit/2 || d.Bytes <= 0 {
		t.Errorf("got %+v, want a delay below %v and a positive number of bytes", d, waitLimit/2)
	}
	wantEqual(t, "durability in another process", there.Durability(), d)
}

func journalsCommit(t *testing.T, here, there store.Journals) {
	c := newCommits()
	j, _ := openJournal(t, here, 1, c)
	defer j.Close(t.Context())
	for round := 1; round <= 3; round++ {
		must(t, j.Append(t.Context(), newRecord(round)))
		c.await(t, "a commit without Flush", func(s store.Commit, _ []error) bool {
			return s.Records == round
		})
		if n := len(readJournal(t, there)); n != round {
			t.Errorf("read %d records after their commit, want %d", n, round)
		}
	}
	large := store.Record{Line: 100, Result: make([]byte, 3<<20)}
	must(t, j.Append(t.Context(), large))
	must(t, j.Flush(t.Context()))
	if records := readJournal(t, there); len(records) != 4 || len(records[3].Result) != 0 {
		t.Errorf("got %d records, want a large one, without its result, after 3", len(records))
	}
}

func journalsReplay(t *testing.T, here, there store.Journals) {
	for epoch := range int64(4) {
		js := here
		if epoch%2 == 1 {
			js = there
		}
		j, replayed := openJournal(t, js, epoch+1, newCommits())
		var want []store.Record
		for line := range int(epoch) * 3 {
			want = append(want, newRecord(line))
		}
		wantEqual(t, fmt.Sprintf("replayed at epoch %d", epoch+1), replayed, want)
		for line := range 3 {
			must(t, j.Append(t.Context(), newRecord(int(epoch)*3+line)))
		}
		must(t, j.Close(t.Context()))
	}
	// The holder of an epoch may open again.
	j, replayed := openJournal(t, here, 4, newCommits())
	if len(replayed) != 12 {
		t.Errorf("replayed %d records at the same epoch, want 12", len(replayed))
	}
	must(t, j.Close(t.Context()))
}

func journalsDuplicates(t *testing.T, here, there store.Journals) {
	j, _ := openJournal(t, here, 1, newCommits())
	must(t, j.Append(t.Context(), store.Record{Line: 1, Result: []byte("first\n")}))
	must(t, j.Append(t.Context(), store.Record{Line: 2, Result: []byte("other\n")}))
	must(t, j.Append(t.Context(), store.Record{Line: 1, Result: []byte("second\n")}))
	must(t, j.Close(t.Context()))
	j, replayed := openJournal(t, there, 2, newCommits())
	must(t, j.Append(t.Context(), store.Record{Line: 1, Result: []byte("third\n")}))
	must(t, j.Close(t.Context()))
	want := []store.Record{{Line: 1, Result: []byte("first\n"), Size: 6},
		{Line: 2, Result: []byte("other\n"), Size: 6}}
	wantEqual(t, "replayed", replayed, want)
	wantEqual(t, "read", readJournal(t, here), want)
}

func journalsFence(t *testing.T, here, there store.Journals) {
	ctx := t.Context()
	c := newCommits()
	old, _ := openJournal(t, here, 1, c)
	must(t, old.Append(t.Context(), newRecord(1)))
	must(t, old.Flush(ctx))

	young, replayed := openJournal(t, there, 2, newCommits())
	wantEqual(t, "replayed", replayed, []store.Record{newRecord(1)})
	// may be accepted: the medium was not read yet
	if err := old.Append(t.Context(), newRecord(2)); err == nil {
		wantErr(t, "flush of the fenced", old.Flush(ctx), store.ErrFenced)
	} else {
		wantErr(t, "append of the fenced", err, store.ErrFenced)
	}
	c.await(t, "the report of the fence", func(_ store.Commit, errs []error) bool {
		return len(errs) > 0 && errors.Is(errs[len(errs)-1], store.ErrFenced)
	})
	wantErr(t, "append after the report", old.Append(t.Context(), newRecord(3)), store.ErrFenced)
	wantErr(t, "flush after the report", old.Flush(ctx), store.ErrFenced)
	_ = old.Close(t.Context())
	if n := c.records(); n != 1 {
		t.Errorf("the fenced writer has %d durable records, want 1", n)
	}

	must(t, young.Append(t.Context(), newRecord(4)))
	must(t, young.Flush(ctx))
	wantEqual(t, "read", readJournal(t, here), []store.Record{newRecord(1), newRecord(4)})
	for _, js := range []store.Journals{here, there} {
		_, err := js.Open(ctx, theChunk, 1, func(r store.Record) {
			t.Errorf("replayed line %d to a latecomer", r.Line)
		}, newCommits().committed)
		wantErr(t, "open at a lower epoch", err, store.ErrFenced)
	}
	must(t, young.Append(t.Context(), newRecord(5))) // still works
	must(t, young.Close(t.Context()))
	wantEqual(t, "read at the end", readJournal(t, there),
		[]store.Record{newRecord(1), newRecord(4), newRecord(5)})
}

func journalsEndedContext(t *testing.T, here, there store.Journals) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	j, _ := openJournal(t, here, 1, newCommits())
	must(t, j.Append(ended, newRecord(1))) // nothing to wait for
	must(t, j.Flush(t.Context()))
	var at store.Location
	must(t, here.Read(t.Context(), theChunk, func(_ store.Record, found store.Location) error {
		at = found
		return nil
	}))
	results := got(here.Results(t.Context(), theChunk))(t)
	wantErr(t, "copy", results.Copy(ended, io.Discard, at), context.Canceled)
	must(t, results.Close())
	_, err := here.Open(ended, theChunk, 2, noReplay(t), newCommits().committed)
	wantErr(t, "open", err, context.Canceled)
	_ = j.Close(ended)
	if err := j.Append(t.Context(), newRecord(2)); err == nil {
		t.Error("appended after a Close whose context had ended")
	}
	wantEqual(t, "read", readJournal(t, there), []store.Record{newRecord(1)})
}

func journalsRace(t *testing.T, here, there store.Journals) {
	const writers, each = 4, 500
	c := newCommits()
	j, _ := openJournal(t, here, 1, c)
	var running sync.WaitGroup
	for w := range writers {
		running.Go(func() {
			for i := range each {
				if err := j.Append(t.Context(), newRecord(w*each+i)); err != nil {
					t.Errorf("append: %v", err)
				}
				if i%100 == 99 {
					if err := j.Flush(t.Context()); err != nil {
						t.Errorf("flush: %v", err)
					}
				}
			}
		})
	}
	running.Wait()
	must(t, j.Close(t.Context()))
	if n := c.records(); n != writers*each {
		t.Errorf("%d records were committed, want %d", n, writers*each)
	}
	records := readJournal(t, there)
	slices.SortFunc(records, func(a, b store.Record) int { return int(a.Line) - int(b.Line) })
	if len(records) != writers*each {
		t.Fatalf("read %d records, want %d", len(records), writers*each)
	}
	for line, r := range records {
		wantEqual(t, "record", r, newRecord(line))
	}
}

// journalsHandover has a chunk claimed by a next owner while both write: the successor replays all
// records that the journal reported as durable to its predecessor, and no others appear later.
func journalsHandover(t *testing.T, here, there store.Journals) {
	const handovers = 12
	ctx := t.Context()
	line := 0
	durable := 0
	var replayedLast int
	var last store.Journal
	views := []store.Journals{here, there}
	var running sync.WaitGroup
	for epoch := int64(1); epoch <= handovers; epoch++ {
		c := newCommits()
		j, replayed := openJournal(t, views[epoch%2], epoch, c)
		if len(replayed) < durable {
			t.Fatalf("epoch %d: %d records replayed, but %d were durable", epoch,
				len(replayed), durable)
		}
		replayedLast, last = len(replayed), j
		start := line
		line += 50
		running.Go(func() { // writes until it is fenced, as a process that does not know of it yet
			for i := start; i < start+50; i++ {
				if j.Append(t.Context(), newRecord(i)) != nil {
					return
				}
				if i%10 == 9 && j.Flush(ctx) != nil {
					return
				}
			}
		})
		c.await(t, "some records of this epoch", func(s store.Commit, _ []error) bool {
			return s.Records > 0
		})
		durable = replayedLast + c.records()
	}
	running.Wait()
	must(t, last.Flush(ctx))
	if n := len(readJournal(t, here)); n != replayedLast+50 {
		t.Errorf("read %d records, want the %d that the last owner replayed and its own 50", n,
			replayedLast)
	}
	must(t, last.Close(t.Context()))
}

func journalsRemove(t *testing.T, here, there store.Journals) {
	ctx := t.Context()
	batches := func() []string {
		list := got(there.Batches(ctx))(t)
		slices.Sort(list)
		return list
	}
	must(t, here.Remove(ctx, "batch_1"))
	for _, id := range []store.ChunkID{{Batch: "batch_1", Index: 0}, {Batch: "batch_1", Index: 7},
		{Batch: "batch_2", Index: 0}} {
		j := got(here.Open(ctx, id, 1, noReplay(t), newCommits().committed))(t)
		must(t, j.Append(t.Context(), newRecord(1)))
		must(t, j.Close(t.Context()))
	}
	wantEqual(t, "batches", batches(), []string{"batch_1", "batch_2"})
	open, _ := openJournal(t, here, 2, newCommits())
	must(t, there.Remove(ctx, "batch_1"))
	wantEqual(t, "batches after the removal", batches(), []string{"batch_2"})
	if records := readJournal(t, here); len(records) != 0 {
		t.Errorf("read %v from a removed journal", records)
	}
	_ = open.Append(t.Context(), newRecord(2)) // allowed, with any effect
	_ = open.Close(t.Context())

	for _, batch := range []string{"", "..", "a/b", "../blobs"} {
		if err := here.Remove(ctx, batch); err == nil {
			t.Errorf("removed the journals of batch %q", batch)
		}
	}
}
