package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	testpostgres "github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/postgres"
)

// movingClock is a clock that all processes of a test read.
type movingClock struct{ micros atomic.Int64 }

func (c *movingClock) Now() time.Time { return time.UnixMicro(c.micros.Load()) }

// TestClaimsOfManyProcesses has processes claim, release and finish the chunks of a batch while
// their leases end at any time. Each chunk is finished by one claim, each claim has an epoch of its
// own, and whoever lost a claim is fenced.
func TestClaimsOfManyProcesses(t *testing.T) {
	const processes, chunks = 4, 60
	s := testpostgres.Shared(t)
	address := s.URL(s.NewDatabase(t))
	clock := &movingClock{}
	clock.micros.Store(1 << 50)
	dbs := make([]*postgres.DB, processes)
	for i := range dbs {
		dbs[i] = open(t, address, postgres.Options{Now: clock.Now})
	}
	ctx := t.Context()
	must(t, dbs[0].CreateBatch(ctx, batch("b")))
	all := make([]store.Chunk, chunks)
	for i := range all {
		all[i] = store.Chunk{ChunkID: store.ChunkID{Batch: "b", Index: i}, Model: "m",
			First: 10 * i, Count: 10}
	}
	must(t, dbs[0].AddChunks(ctx, "b", all))

	var epochs sync.Map // chunk and epoch: true
	var finished [chunks]atomic.Int32
	var fenced atomic.Int32
	deadline := time.Now().Add(2 * time.Minute)
	var running sync.WaitGroup
	for i, db := range dbs {
		running.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			node := fmt.Sprint("n", i)
			for time.Now().Before(deadline) {
				o, err := db.Register(ctx, node, time.Second)
				if err != nil {
					t.Errorf("register: %v", err)
					return
				}
				claimed, err := db.ClaimChunks(ctx, o, "b", "m", 1+random.IntN(5), nil)
				if err != nil {
					t.Errorf("claim: %v", err)
					return
				}
				for _, c := range claimed {
					if _, double := epochs.LoadOrStore([2]int64{int64(c.Index), c.Epoch},
						true); double {
						t.Errorf("chunk %d was claimed twice at epoch %d", c.Index, c.Epoch)
					}
					if random.IntN(3) == 0 { // all leases end
						clock.micros.Add(time.Second.Microseconds())
					}
					end := func(ctx context.Context, o store.Owner, c store.Chunk) error {
						return db.FinishChunks(ctx, o, c)
					}
					if random.IntN(3) == 0 {
						end = db.ReleaseChunk
					} else {
						c.Tally.Completed = 10
					}
					switch err := end(ctx, o, c); {
					case errors.Is(err, store.ErrFenced):
						fenced.Add(1)
					case err != nil:
						t.Errorf("end a claim: %v", err)
					case c.Tally.Completed > 0:
						finished[c.Index].Add(1)
					}
				}
				n, err := db.CountChunks(ctx, store.Owner{}, "b", nil)
				if err != nil || n.Done == chunks {
					return
				}
			}
		})
	}
	running.Wait()
	for i := range finished {
		if n := finished[i].Load(); n != 1 {
			t.Errorf("chunk %d was finished %d times", i, n)
		}
	}
	sum, err := dbs[0].SumDone(ctx, map[string][]int{"b": nil})
	if err != nil || sum["b"].Completed != 10*chunks {
		t.Errorf("the sum of done chunks is %+v, %v", sum, err)
	}
	t.Logf("%d ends of claims were fenced", fenced.Load())
}

// A claim sees the owners as of when it gets the lock of its batch, not as of when it began to
// wait: the owner that has registered and claimed meanwhile keeps its chunk.
func TestClaimsThatWaitSeeNewOwners(t *testing.T) {
	s := testpostgres.Shared(t)
	database := s.NewDatabase(t)
	here := open(t, s.URL(database), postgres.Options{})
	ctx := t.Context()
	must(t, here.CreateBatch(ctx, batch("b")))
	must(t, here.AddChunks(ctx, "b", []store.Chunk{{ChunkID: store.ChunkID{Batch: "b"}, Model: "m",
		Count: 1}}))
	late, err := here.Register(ctx, "late", time.Hour)
	must(t, err)

	// This transaction does what a claim of another process does, slowly.
	conn, err := pgx.Connect(ctx, s.URL(database))
	must(t, err)
	defer conn.Close(ctx)
	tx, err := conn.Begin(ctx)
	must(t, err)
	_, err = tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", postgres.ClaimLock("b"))
	must(t, err)
	type answer struct {
		chunks []store.Chunk
		err    error
	}
	waiting := make(chan answer, 1)
	go func() {
		chunks, err := here.ClaimChunks(ctx, late, "b", "m", 1, nil)
		waiting <- answer{chunks, err}
	}()
	awaitLock(t, s, database)
	first, err := here.Register(ctx, "first", time.Hour)
	must(t, err)
	_, err = tx.Exec(ctx, "UPDATE chunks SET node = 'first', incarnation = $1, epoch = 1",
		first.Incarnation)
	must(t, err)
	must(t, tx.Commit(ctx))
	got := <-waiting
	must(t, got.err)
	if len(got.chunks) != 0 {
		t.Errorf("claimed %+v, which another owner holds", got.chunks)
	}
}

// TestDeadlocksAreRetried makes a transaction wait for another one that waits for it.
func TestDeadlocksAreRetried(t *testing.T) {
	s := testpostgres.Shared(t)
	database := s.NewDatabase(t)
	db := open(t, s.URL(database), postgres.Options{})
	ctx := t.Context()
	o, err := db.Register(ctx, "n", time.Hour)
	must(t, err)
	states := []store.LearnedState{{Pool: "a", Kind: "x", Data: []byte("1")},
		{Pool: "b", Kind: "x", Data: []byte("1")}}
	must(t, db.SaveLearned(ctx, o, states))
	conn, err := pgx.Connect(ctx, s.URL(database))
	must(t, err)
	defer conn.Close(ctx)
	tx, err := conn.Begin(ctx)
	must(t, err)
	// Only the other transaction is patient enough to find the deadlock last.
	_, err = tx.Exec(ctx, "SET LOCAL deadlock_timeout = '1min'")
	must(t, err)
	_, err = tx.Exec(ctx, "UPDATE learned SET saved = 0 WHERE pool = 'b'")
	must(t, err)
	saved := make(chan error, 1)
	go func() { saved <- db.SaveLearned(ctx, o, states) }()
	awaitLock(t, s, database)
	_, err = tx.Exec(ctx, "UPDATE learned SET saved = 0 WHERE pool = 'a'")
	must(t, err)
	must(t, tx.Commit(ctx))
	must(t, <-saved)
}
