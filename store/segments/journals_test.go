package segments_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/segments"
	"github.com/tidefill/tidefill/store/segments/registrytest"
)

// quiet does nothing by itself except commits.
var quiet = segments.Options{CommitAfter: 10 * time.Millisecond,
	CommitFewAfter: 10 * time.Millisecond, CommitGap: time.Millisecond, CompactCount: -1,
	RetryAfter: 20 * time.Millisecond, DeleteEvery: -1, SweepEvery: -1}

// counting counts the requests of each kind, and can hold Put back or fail.
type counting struct {
	segments.Objects
	mu      sync.Mutex
	puts    int
	reads   int
	failing error
	hold    chan struct{} // Put waits until it is closed
	afterIt func()        // runs after each Put
}

func (c *counting) Put(
	ctx context.Context, name string, size int64, content func() io.Reader,
) error {
	c.mu.Lock()
	c.puts++
	hold, failing, after := c.hold, c.failing, c.afterIt
	c.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if failing != nil {
		return failing
	}
	err := c.Objects.Put(ctx, name, size, content)
	if after != nil {
		after()
	}
	return err
}

func (c *counting) ReadAt(ctx context.Context, name string, p []byte, offset int64) error {
	c.mu.Lock()
	c.reads++
	c.mu.Unlock()
	return c.Objects.ReadAt(ctx, name, p, offset)
}

func (c *counting) counts() (puts, reads int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.puts, c.reads
}

func (c *counting) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

func chunkID(index int) store.ChunkID { return store.ChunkID{Batch: "batch_1", Index: index} }

func record(line int) store.Record {
	return store.Record{Line: uint32(line), Result: fmt.Appendf(nil, "{\"line\":%d}\n", line)}
}

func openJournal(
	t testing.TB, js *segments.Journals, chunk int, epoch int64,
) (store.Journal, int) {
	t.Helper()
	replayed := 0
	j, err := js.Open(t.Context(), chunkID(chunk), epoch, func(store.Record) { replayed++ },
		func(store.Commit) {})
	if err != nil {
		t.Fatal(err)
	}
	return j, replayed
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lines returns the numbers and locations of a chunk's records.
func lines(t testing.TB, js *segments.Journals, chunk int) (at map[int]store.Location) {
	t.Helper()
	at = map[int]store.Location{}
	must(t, js.Read(t.Context(), chunkID(chunk), func(r store.Record, l store.Location) error {
		if want := record(int(r.Line)).Result; string(r.Result) != string(want) {
			t.Errorf("line %d has the result %q", r.Line, r.Result)
		}
		at[int(r.Line)] = l
		return nil
	}))
	return at
}

func ranges(t testing.TB, r segments.Registry, chunk int) []segments.Range {
	t.Helper()
	list, err := r.Ranges(t.Context(), chunkID(chunk))
	must(t, err)
	return list
}

// TestCompaction writes many small segments. They become few, while locations and results stay.
func TestCompaction(t *testing.T) {
	registry := registrytest.NewMemory(time.Now)
	opts := quiet
	opts.CompactCount = 4
	opts.CacheBytes = 1 // nothing is cached
	js := open(t, directory(t), registry, opts)
	const chunks, segmentsEach = 3, 67
	journals := make([]store.Journal, chunks)
	for c := range journals {
		journals[c], _ = openJournal(t, js, c, 1)
	}
	results, err := js.Results(t.Context(), chunkID(0))
	if !errors.Is(err, store.ErrNotFound) {
		t.Errorf("results of an empty journal: got %v, %v", results, err)
	}
	var early store.Results
	var before map[int]store.Location
	for n := range segmentsEach {
		for c, j := range journals {
			must(t, j.Append(t.Context(), record(n*chunks+c)))
		}
		for _, j := range journals {
			must(t, j.Flush(t.Context()))
		}
		if n == 1 {
			before = lines(t, js, 0)
			early, err = js.Results(t.Context(), chunkID(0))
			must(t, err)
		}
	}
	deadline := time.After(20 * time.Second)
	for len(ranges(t, registry, 0)) > 12 {
		select {
		case <-deadline:
			t.Fatalf("the journal has %d ranges after %d segments", len(ranges(t, registry, 0)),
				segmentsEach)
		case <-time.After(5 * time.Millisecond):
		}
	}
	if _, err := registry.AdvanceSweep(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	due, err := registry.TakeDeletions(t.Context(), 0, 1000)
	must(t, err)
	if len(due) < segmentsEach/2 {
		t.Errorf("%d objects are queued, want most of %d", len(due), segmentsEach)
	}
	for c := range chunks {
		if n := len(lines(t, js, c)); n != segmentsEach {
			t.Errorf("chunk %d has %d lines, want %d", c, n, segmentsEach)
		}
	}
	after := lines(t, js, 0)
	for line, at := range before {
		if after[line] != at {
			t.Errorf("line %d moved from %v to %v", line, at, after[line])
		}
		var b bytes.Buffer
		must(t, early.Copy(t.Context(), &b, at)) // the reader is older than the compaction
		if b.String() != string(record(line).Result) {
			t.Errorf("line %d: copied %q", line, b.String())
		}
	}
	if journal, replayed := openJournal(t, js, 1, 2); replayed != segmentsEach {
		t.Errorf("replayed %d lines, want %d", replayed, segmentsEach)
	} else {
		must(t, journal.Close(t.Context()))
	}
}

// TestManyRangesAreAdopted opens a journal that another process has left in many segments.
func TestManyRangesAreAdopted(t *testing.T) {
	registry, objects := registrytest.NewMemory(time.Now), directory(t)
	js := open(t, objects, registry, quiet)
	j, _ := openJournal(t, js, 0, 1)
	for n := range 80 {
		must(t, j.Append(t.Context(), record(n)))
		must(t, j.Flush(t.Context()))
	}
	opts := quiet
	opts.CompactCount = 16
	next := open(t, objects, registry, opts)
	_, replayed := openJournal(t, next, 0, 2)
	deadline := time.After(20 * time.Second)
	for len(ranges(t, registry, 0)) > 1 {
		select {
		case <-deadline:
			t.Fatalf("the journal has %d ranges", len(ranges(t, registry, 0)))
		case <-time.After(5 * time.Millisecond):
		}
	}
	if n := len(lines(t, next, 0)); n != 80 || replayed != 80 {
		t.Errorf("read %d and replayed %d lines, want 80", n, replayed)
	}
}

// TestSweep leaves objects of a writer that was fenced, and of one that was frozen between its PUT
// and its registration. The sweep deletes the first one; the second one writes its object again.
func TestSweep(t *testing.T) {
	registry := registrytest.NewMemory(time.Now)
	objects := &counting{Objects: directory(t)}
	opts := quiet
	opts.SweepAge, opts.DeleteAfter = time.Nanosecond, time.Nanosecond
	here := open(t, objects, registry, opts)
	there := open(t, objects, registry, opts)

	late, _ := openJournal(t, here, 0, 1)
	openJournal(t, there, 0, 2)
	must(t, late.Append(t.Context(), record(1)))
	if err := late.Flush(t.Context()); !errors.Is(err, store.ErrFenced) {
		t.Fatalf("flush: got %v, want %v", err, store.ErrFenced)
	}
	if n, err := there.Sweep(t.Context()); n != 1 || err != nil {
		t.Errorf("the sweep deleted %d objects, %v, want 1", n, err)
	}

	frozen, _ := openJournal(t, here, 1, 1)
	objects.set(func() {
		objects.afterIt = func() {
			objects.set(func() { objects.afterIt = nil })
			<-time.After(2 * time.Millisecond)
			if n, err := there.Sweep(t.Context()); n != 1 || err != nil {
				t.Errorf("the sweep deleted %d objects, %v, want the unregistered one", n, err)
			}
		}
	})
	must(t, frozen.Append(t.Context(), record(7)))
	must(t, frozen.Flush(t.Context()))
	if at := lines(t, there, 1); len(at) != 1 {
		t.Errorf("read %d lines, want the one that was written again", len(at))
	}

	must(t, there.Remove(t.Context(), "batch_1"))
	<-time.After(2 * time.Millisecond)
	if n, err := there.DeleteQueued(t.Context()); n != 1 || err != nil {
		t.Errorf("deleted %d queued objects, %v, want 1", n, err)
	}
	if names, err := objects.List(t.Context(), "", 10); err != nil || len(names) > 0 {
		t.Errorf("objects %v are left, %v", names, err)
	}
}

// lossy loses the answer of the first registration.
type lossy struct {
	segments.Registry
	lost bool
}

func (l *lossy) Register(
	ctx context.Context, s segments.Segment,
) (segments.Registered, error) {
	done, err := l.Registry.Register(ctx, s)
	if err == nil && !l.lost {
		l.lost = true
		return segments.Registered{}, store.ErrUnavailable
	}
	return done, err
}

// TestALostAnswer has a registration succeed without an answer: the records are reported once and
// read once.
func TestALostAnswer(t *testing.T) {
	registry := &lossy{Registry: registrytest.NewMemory(time.Now)}
	js := open(t, directory(t), registry, quiet)
	var mu sync.Mutex
	records := 0
	j, err := js.Open(t.Context(), chunkID(0), 1, func(store.Record) {}, func(c store.Commit) {
		mu.Lock()
		defer mu.Unlock()
		records += c.Records
	})
	must(t, err)
	must(t, j.Append(t.Context(), record(1)))
	if err := j.Flush(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("flush: got %v, want %v", err, store.ErrUnavailable)
	}
	must(t, j.Flush(t.Context()))
	must(t, j.Close(t.Context()))
	if n := len(lines(t, js, 0)); records != 1 || n != 1 {
		t.Errorf("%d records were committed and %d read, want 1", records, n)
	}
}

// TestALostObject deletes the object of a range: its lines are skipped, the others are read.
func TestALostObject(t *testing.T) {
	registry, objects := registrytest.NewMemory(time.Now), directory(t)
	js := open(t, objects, registry, quiet)
	j, _ := openJournal(t, js, 0, 1)
	for n := range 3 {
		must(t, j.Append(t.Context(), record(n)))
		must(t, j.Flush(t.Context()))
	}
	lost := ranges(t, registry, 0)[1]
	must(t, objects.Delete(t.Context(), lost.Key.String()))
	at := lines(t, js, 0)
	if _, found := at[1]; len(at) != 2 || found || js.DamagedBytes() != lost.Length {
		t.Errorf("read %v, %d bytes damaged, want lines 0 and 2, and %d", at, js.DamagedBytes(),
			lost.Length)
	}
}

// TestBackPressure holds the storage back: Append waits when the queue is full.
func TestBackPressure(t *testing.T) {
	objects := &counting{Objects: directory(t), hold: make(chan struct{})}
	opts := quiet
	opts.QueueBytes = 100 << 10
	js := open(t, objects, registrytest.NewMemory(time.Now), opts)
	j, _ := openJournal(t, js, 0, 1)
	large := store.Record{Line: 1, Result: bytes.Repeat([]byte("x"), 30<<10)}
	for n := range 3 {
		large.Line = uint32(n)
		must(t, j.Append(t.Context(), large))
	}
	full, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := j.Append(full, large); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("append to a full queue: got %v, want %v", err, context.DeadlineExceeded)
	}
	waiting := make(chan error)
	go func() {
		large.Line = 9
		waiting <- j.Append(t.Context(), large)
	}()
	select {
	case err := <-waiting:
		t.Fatalf("append did not wait: %v", err)
	case <-time.After(30 * time.Millisecond):
	}
	close(objects.hold)
	must(t, <-waiting)
	must(t, j.Close(t.Context()))
	read := 0
	must(t, js.Read(t.Context(), chunkID(0), func(store.Record, store.Location) error {
		read++
		return nil
	}))
	if read != 4 {
		t.Errorf("read %d records, want 4", read)
	}
}

// TestFewRequests counts the requests for 20,000 lines of 20 chunks.
func TestFewRequests(t *testing.T) {
	objects := &counting{Objects: directory(t)}
	opts := segments.Options{CompactCount: -1, DeleteEvery: -1, SweepEvery: -1}
	registry := registrytest.NewMemory(time.Now)
	js := open(t, objects, registry, opts)
	const chunks, each = 20, 1000
	journals := make([]store.Journal, chunks)
	for c := range journals {
		journals[c], _ = openJournal(t, js, c, 1)
	}
	r := store.Record{Result: []byte(strings.Repeat("r", 800) + "\n")}
	for n := range each {
		for c, j := range journals {
			r.Line = uint32(n*chunks + c)
			must(t, j.Append(t.Context(), r))
		}
	}
	var closing sync.WaitGroup
	for _, j := range journals {
		closing.Go(func() {
			if err := j.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	closing.Wait()
	puts, _ := objects.counts()
	// 17 MB are more than a segment has. How many there are depends on how fast they are written.
	if puts < 2 || puts > 20 {
		t.Errorf("wrote 20,000 lines with %d requests", puts)
	}
	read := 0
	for c := range chunks {
		must(t, js.Read(t.Context(), chunkID(c), func(store.Record, store.Location) error {
			read++
			return nil
		}))
	}
	_, reads := objects.counts()
	if read != chunks*each || reads > puts*chunks {
		t.Errorf("read %d lines with %d requests, want %d with at most %d", read, reads,
			chunks*each, puts*chunks)
	}
	t.Logf("20,000 lines: %d requests to write, %d to read", puts, reads)
}

// TestFewLinesWaitLonger appends a line now and then: the segments are fewer than at the normal
// interval, and no record waits longer than the declared delay.
func TestFewLinesWaitLonger(t *testing.T) {
	objects := &counting{Objects: directory(t)}
	opts := quiet
	opts.CommitAfter, opts.CommitFewAfter, opts.CommitFew = 20*time.Millisecond,
		300*time.Millisecond, 10
	js := open(t, objects, registrytest.NewMemory(time.Now), opts)
	if d := js.Durability(); d.Delay != 300*time.Millisecond {
		t.Errorf("declares a delay of %v", d.Delay)
	}
	committed := make(chan int, 100)
	j, err := js.Open(t.Context(), chunkID(0), 1, func(store.Record) {},
		func(c store.Commit) { committed <- c.Records })
	must(t, err)
	for n := range 5 {
		must(t, j.Append(t.Context(), record(n)))
		<-time.After(15 * time.Millisecond)
	}
	if n := <-committed; n != 5 {
		t.Errorf("the first commit has %d records, want 5", n)
	}
	start := time.Now()
	for n := range 10 {
		must(t, j.Append(t.Context(), record(100+n)))
	}
	if n := <-committed; n != 10 || time.Since(start) > 250*time.Millisecond {
		t.Errorf("the commit of many has %d records after %v", n, time.Since(start))
	}
	if puts, _ := objects.counts(); puts != 2 {
		t.Errorf("%d segments, want 2", puts)
	}
}
