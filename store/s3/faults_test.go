package s3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	servers "github.com/tidefill/tidefill/internal/testservers/s3"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/s3"
	"github.com/tidefill/tidefill/store/segments/registrytest"
)

// impatient returns the configuration of a new prefix behind a proxy.
func impatient(t testing.TB, p *servers.Proxy) s3.Config {
	c := config(t, p.URL)
	c.PartBytes = 5 << 20
	c.StallAfter = 200 * time.Millisecond
	return c
}

func content(size int) []byte {
	random := rand.New(rand.NewPCG(uint64(size), 1))
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

// once has each kind of request fail once.
func once(fault servers.Fault) func(*http.Request) servers.Fault {
	var mu sync.Mutex
	seen := map[string]bool{}
	return func(r *http.Request) servers.Fault {
		mu.Lock()
		defer mu.Unlock()
		q := r.URL.Query()
		kind := fmt.Sprint(r.Method, q.Has("uploads"), q.Has("uploadId"), q.Get("partNumber"),
			q.Has("list-type"), q.Has("delete"), r.Header.Get("Range"))
		if seen[kind] {
			return servers.None
		}
		seen[kind] = true
		return fault
	}
}

// TestFaultsAreTriedAgain has each request of a blob's life fail once, in every way.
func TestFaultsAreTriedAgain(t *testing.T) {
	p := servers.StartProxy(t, servers.Start(t))
	want := content(6 << 20)
	for _, fault := range servers.AllFaults() {
		t.Run(fmt.Sprint("fault ", int(fault)), func(t *testing.T) {
			p.Choose(nil)
			blobs := open(t, impatient(t, p)).Blobs()
			p.Choose(once(fault))
			before := p.Failed()
			for key, size := range map[string]int{"d/large": len(want), "d/small": 1000} {
				w, err := blobs.Create(t.Context(), key)
				if err == nil {
					_, err = w.Write(want[:size])
				}
				if err == nil {
					err = w.Commit(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
				o, err := blobs.Open(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(io.NewSectionReader(o, 0, o.Size()))
				if err != nil || !bytes.Equal(got, want[:size]) {
					t.Errorf("%s: read %d bytes, %v, want %d", key, len(got), err, size)
				}
				if err := o.Close(); err != nil {
					t.Error(err)
				}
			}
			if page, err := blobs.List(t.Context(), "d", "", 0); err != nil || len(page) != 2 {
				t.Errorf("listed %v, %v", page, err)
			}
			if err := blobs.DeletePrefix(t.Context(), "d"); err != nil {
				t.Error(err)
			}
			if n := p.Failed() - before; n < 7 {
				t.Errorf("%d requests failed, want at least 7", n)
			}
		})
	}
}

// TestAnOutageIsReported has all requests fail: callers get ErrUnavailable in bounded time.
func TestAnOutageIsReported(t *testing.T) {
	p := servers.StartProxy(t, servers.Start(t))
	blobs := open(t, impatient(t, p)).Blobs()
	write := func() error {
		w, err := blobs.Create(t.Context(), "k")
		if err != nil {
			return err
		}
		defer w.Abort()
		if _, err := w.Write(make([]byte, 6<<20)); err != nil {
			return err
		}
		return w.Commit(t.Context())
	}
	for _, fault := range servers.AllFaults() {
		p.Choose(func(*http.Request) servers.Fault { return fault })
		_, openErr := blobs.Open(t.Context(), "k")
		_, listErr := blobs.List(t.Context(), "d", "", 0)
		for what, err := range map[string]error{"write": write(), "open": openErr,
			"list": listErr, "delete": blobs.Delete(t.Context(), "k")} {
			if what == "delete" && (fault == servers.CutResponse || fault == servers.StallRequest) {
				continue // its answer has no body to cut
			}
			if !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("fault %d: %s: got %v, want %v", fault, what, err, store.ErrUnavailable)
			}
		}
	}
	p.Choose(nil)
	if err := write(); err != nil {
		t.Errorf("after the outage: %v", err)
	}
}

// TestJournalsSurviveAStorageThatFails appends while a random share of requests fails. Every record
// that was reported as committed is there at the end, once.
func TestJournalsSurviveAStorageThatFails(t *testing.T) {
	p := servers.StartProxy(t, servers.Start(t))
	c := impatient(t, p)
	c.Tries = 2
	registry := registrytest.NewMemory(time.Now)
	here, there := openJournals(t, open(t, c), registry), openJournals(t, open(t, c), registry)

	var mu sync.Mutex
	random := rand.New(rand.NewPCG(7, 7))
	all := servers.AllFaults()
	p.Choose(func(*http.Request) servers.Fault {
		mu.Lock()
		defer mu.Unlock()
		if random.IntN(100) < 40 {
			return all[random.IntN(len(all))]
		}
		return servers.None
	})
	const chunks, each, owners = 4, 150, 3
	var running sync.WaitGroup
	for n := range chunks {
		running.Go(func() {
			appendUnderFaults(t, here, there, store.ChunkID{Batch: "batch_1", Index: n}, owners,
				each)
		})
	}
	running.Wait()
	failed := p.Failed()
	p.Choose(nil)
	for n := range chunks {
		lines := map[uint32]bool{}
		err := there.Read(t.Context(), store.ChunkID{Batch: "batch_1", Index: n},
			func(r store.Record, _ store.Location) error {
				if lines[r.Line] || string(r.Result) != result(n, r.Line) {
					t.Errorf("chunk %d: line %d is doubled or damaged", n, r.Line)
				}
				lines[r.Line] = true
				return nil
			})
		if err != nil || len(lines) != owners*each {
			t.Errorf("chunk %d: read %d lines, %v, want %d", n, len(lines), err, owners*each)
		}
	}
	if there.DamagedBytes()+here.DamagedBytes() > 0 || failed < 20 {
		t.Errorf("%d bytes were damaged, %d requests failed", there.DamagedBytes(), failed)
	}
}

func result(chunk int, line uint32) string {
	return fmt.Sprintf("{\"line\":%d,%q:1}\n", line, strings.Repeat(fmt.Sprint(chunk), 300))
}

// appendUnderFaults has a chunk written by several owners, one after the other. Each repeats what
// its predecessor did not commit.
func appendUnderFaults(
	t *testing.T, here, there store.Journals, id store.ChunkID, owners, each int,
) {
	for owner := range owners {
		js := []store.Journals{here, there}[owner%2]
		done := map[uint32]bool{}
		j, err := retry(t, func() (store.Journal, error) {
			clear(done)
			return js.Open(t.Context(), id, int64(owner+1), func(r store.Record) {
				done[r.Line] = true
			}, func(store.Commit) {})
		})
		if err != nil {
			return
		}
		if len(done) < owner*each {
			t.Errorf("owner %d replayed %d lines, want at least %d", owner, len(done), owner*each)
		}
		for line := range uint32((owner + 1) * each) {
			if done[line] {
				continue
			}
			r := store.Record{Line: line, Result: []byte(result(id.Index, line))}
			if err := j.Append(t.Context(), r); err != nil {
				t.Errorf("append: %v", err)
			}
			if line%40 == 39 {
				_ = j.Flush(t.Context()) // fails now and then
			}
		}
		_, _ = retry(t, func() (any, error) { return nil, j.Flush(t.Context()) })
		if owner%2 == 0 { // others leave without closing, as crashed processes do
			if err := j.Close(t.Context()); err != nil {
				t.Errorf("close: %v", err)
			}
		}
	}
}

// retry repeats a step until it succeeds or a minute is over.
func retry[T any](t *testing.T, step func() (T, error)) (v T, err error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		if v, err = step(); err == nil {
			return v, nil
		}
		if !errors.Is(err, store.ErrUnavailable) {
			break
		}
	}
	t.Errorf("a step does not succeed: %v", err)
	return v, err
}

// TestCommitsReportAnOutage has the journals report an outage, each new reason of it, and its end.
func TestCommitsReportAnOutage(t *testing.T) {
	p := servers.StartProxy(t, servers.Start(t))
	js := openJournals(t, open(t, impatient(t, p)), registrytest.NewMemory(time.Now))
	commits := make(chan store.Commit, 100)
	j, err := js.Open(t.Context(), store.ChunkID{Batch: "batch_1"}, 1, func(store.Record) {},
		func(c store.Commit) { commits <- c })
	if err != nil {
		t.Fatal(err)
	}
	p.Choose(func(*http.Request) servers.Fault { return servers.SlowDown })
	if err := j.Append(t.Context(), store.Record{Line: 1, Result: []byte("x\n")}); err != nil {
		t.Fatal(err)
	}
	wantOutage(t, <-commits)
	p.Choose(func(*http.Request) servers.Fault { return servers.Error })
	wantOutage(t, <-commits)
	if err := j.Append(t.Context(), store.Record{Line: 2, Result: []byte("y\n")}); err != nil {
		t.Fatal(err)
	}
	if err := j.Flush(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("flush: got %v, want %v", err, store.ErrUnavailable)
	}
	p.Choose(nil)
	for records := 0; records < 2; {
		c := <-commits
		if records += c.Records; records == 0 {
			wantOutage(t, c) // a try that failed before has a third reason, such as a stall
		} else if c.Err != nil {
			t.Fatalf("got %+v after the outage", c)
		}
	}
	if err := j.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func wantOutage(t *testing.T, c store.Commit) {
	t.Helper()
	if !errors.Is(c.Err, store.ErrUnavailable) || c.Records > 0 {
		t.Fatalf("got %+v, want the outage", c)
	}
}
