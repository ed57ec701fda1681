package postgres_test

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	testpostgres "github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/postgres"
	"github.com/tidefill/tidefill/store/segments"
)

// countingProxy forwards connections to a server, and counts how often the client waits for it.
type countingProxy struct {
	port  int
	trips atomic.Int64
}

func startProxy(t testing.TB, target int) *countingProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	p := &countingProxy{port: l.Addr().(*net.TCPAddr).Port}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go p.forward(client, target)
		}
	}()
	return p
}

// forward counts an answer that follows a request.
func (p *countingProxy) forward(client net.Conn, target int) {
	defer client.Close()
	server, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", target))
	if err != nil {
		return
	}
	var mu sync.Mutex
	asked := false
	note := func(request bool) {
		mu.Lock()
		defer mu.Unlock()
		if asked && !request {
			p.trips.Add(1)
		}
		asked = request
	}
	pass := func(to, from net.Conn, request bool) {
		defer to.Close()
		b := make([]byte, 64<<10)
		for {
			n, err := from.Read(b)
			if n > 0 {
				note(request)
				if _, err := to.Write(b[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
	go pass(client, server, false)
	pass(server, client, true)
}

// TestRoundTrips checks what calls cost on a connection that has prepared their statements, and
// without prepared statements.
func TestRoundTrips(t *testing.T) {
	for _, statements := range []string{"prepared", "unnamed"} {
		t.Run(statements, func(t *testing.T) { testRoundTrips(t, statements) })
	}
}

func testRoundTrips(t *testing.T, statements string) {
	s := testpostgres.Shared(t)
	database := s.NewDatabase(t)
	proxy := startProxy(t, s.Port)
	c := config(t, strings.Replace(s.URL(database), fmt.Sprint(s.Port), fmt.Sprint(proxy.port),
		1))
	c.Statements, c.Timeout = statements, time.Minute
	db, err := postgres.Open(t.Context(), c, postgres.Options{})
	must(t, err)
	defer db.Close()
	ctx := t.Context()
	o, err := db.Register(ctx, "n", time.Hour)
	must(t, err)
	const runs, maxRuns = 4, 16
	var chunks []store.Chunk
	for i := range maxRuns {
		chunks = append(chunks, store.Chunk{ChunkID: store.ChunkID{Batch: "b", Index: i},
			Model: "m", Count: 1})
	}
	must(t, db.CreateBatch(ctx, batch("b")))
	must(t, db.AddChunks(ctx, "b", chunks))
	for i := range maxRuns {
		must(t, db.CreateBatch(ctx, batch(fmt.Sprint("old", i))))
	}
	register := db.Segments()
	process, stamp, err := register.Enroll(ctx)
	must(t, err)
	_, err = register.Fence(ctx,
		segments.Fence{Chunk: store.ChunkID{Batch: "b"}, Epoch: 1})
	must(t, err)
	_, cursor, err := db.ChangedBatches(ctx, "", maxRuns+1)
	must(t, err)
	epoch, _, err := db.Lock(ctx, o, "l")
	must(t, err)
	held := []int{}
	count, finished := 0, 0
	for _, test := range []struct {
		name string
		run  func() error
	}{
		{"ClaimChunks and FinishChunks", func() error { // two calls
			claimed, err := db.ClaimChunks(ctx, o, "b", "m", 1, held)
			if err != nil || len(claimed) != 1 {
				return fmt.Errorf("claimed %v, %w", claimed, err)
			}
			return db.FinishChunks(ctx, o, claimed[0])
		}},
		{"PostProgress", func() error {
			return db.PostProgress(ctx, o, map[string]store.ProgressPost{"b": {}})
		}},
		{"ListBatchIDs", func() error {
			_, err := db.ListBatchIDs(ctx, "t", store.BatchQuery{Limit: 20, Model: "m"})
			return err
		}},
		{"ChangedBatches", func() error {
			_, _, err := db.ChangedBatches(ctx, cursor, 10)
			return err
		}},
		{"Renew", func() error { return db.Renew(ctx, o, time.Hour) }},
		{"CreateBatch", func() error {
			count++
			f := store.File{ID: fmt.Sprint("f", count), Tenant: "t", BlobKey: fmt.Sprint("x",
				count)}
			return db.CreateBatch(ctx, batch(fmt.Sprint("new", count)), f)
		}},
		{"UpdateBatch and Batch", func() error { // two calls
			b, err := db.Batch(ctx, "t", "b")
			if err == nil {
				_, err = db.UpdateBatch(ctx, b)
			}
			return err
		}},
		{"FinishBatch and Batch", func() error { // two calls
			b, err := db.Batch(ctx, "t", fmt.Sprint("old", finished))
			finished++
			b.State = store.Completed
			if err == nil {
				_, err = db.FinishBatch(ctx, o, "l", epoch, b, nil)
			}
			return err
		}},
		{"Lead", func() error {
			_, _, err := db.Lead(ctx, o, []string{"a", "b"})
			return err
		}},
		{"Segments.Register", func() error {
			count++
			_, err := register.Register(ctx, segments.Segment{Bytes: 1,
				Key: segments.Key{Stamp: stamp, Process: process, Count: int64(count)},
				Parts: []segments.Part{{Chunk: store.ChunkID{Batch: "b"}, Epoch: 1,
					Length: 1}}})
			return err
		}},
	} {
		most := int64(1)
		if strings.Contains(test.name, " and ") {
			most = 2
		}
		// The first runs prepare the statements, on each connection. On a busy machine each of the
		// others may coincide with the notification of the one before, until they are apart.
		least := int64(1 << 60)
		for i := 0; i < runs || least > most && i < maxRuns; i++ {
			if i >= runs {
				time.Sleep(100 * time.Millisecond)
			}
			before := proxy.trips.Load()
			if err := test.run(); err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			least = min(least, proxy.trips.Load()-before)
		}
		if least != most {
			t.Errorf("%s: %d round trips, want %d", test.name, least, most)
		}
	}
}
