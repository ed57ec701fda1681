package e2e

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	testpostgres "github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/postgres"
)

const (
	claimTTL     = 500 * time.Millisecond
	claimBatches = 400
	claimChunks  = 2 // of each batch
)

// claimStore is the part of a store that owners use.
type claimStore interface {
	store.Owners
	store.Claims
	store.Leads
}

// renewal is an answered renewal or registration.
type renewal struct {
	owner        store.Owner
	called, till int64 // the lease certainly lasts from the answer to till
	answered     int64
}

// registration is a call that makes a new owner of a node.
type registration struct {
	node             string
	incarnation      int64 // 0: no answer
	called, answered int64
}

// claimHistory is a history of owners, completed at its end by what their leases permit.
type claimHistory struct {
	*History
	mu            sync.Mutex
	renewals      []renewal
	registrations []registration
}

// complete returns the calls with what is certain about leases and incarnations.
func (h *claimHistory) complete() []porcupine.Operation {
	calls := h.Calls()
	for i, o := range calls {
		call := o.Input.(claimCall)
		call.leased = map[store.Owner]bool{}
		for _, r := range h.renewals {
			if r.answered <= o.Call && o.Return <= r.till &&
				!h.superseded(r.owner, o.Return, true) {
				call.leased[r.owner] = true
			}
		}
		call.superseded = h.superseded(call.owner, o.Call, false)
		call.maySupersede = h.superseded(call.owner, o.Return, true)
		calls[i].Input = call
	}
	return calls
}

// superseded reports whether the node of an owner has registered again before a time: certainly, or
// possibly.
func (h *claimHistory) superseded(o store.Owner, at int64, possibly bool) bool {
	for _, r := range h.registrations {
		later := r.incarnation > o.Incarnation || r.incarnation == 0
		if r.node != o.Node || !later {
			continue
		}
		if possibly && r.called <= at || !possibly && r.incarnation != 0 && r.answered <= at {
			return true
		}
	}
	return false
}

// claimant is one process: it claims, holds, finishes and releases chunks, and leads names.
type claimant struct {
	node    string
	store   claimStore
	history *claimHistory
	random  *rand.Rand
	owner   store.Owner
	held    []store.Chunk // also those that it has lost without noticing
	silent  time.Time     // it does not renew until then, as if it were frozen
}

// away reports whether a call got no answer, and fails the test for an error that it must not have.
func away(t *testing.T, err error) bool {
	if err == nil || errors.Is(err, store.ErrFenced) {
		return false
	}
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v, want %v", err, store.ErrUnavailable)
	}
	time.Sleep(2 * time.Millisecond)
	return true
}

// record adds a call about claims to the history.
func (c *claimant) record(
	t *testing.T, called int64, object, what string, epoch int64, answer claimAnswer, err error,
) {
	input := claimCall{object: object, what: what, owner: c.owner, epoch: epoch}
	if away(t, err) {
		c.history.AddUnknown(called, input, claimAnswer{unknown: true})
		return
	}
	answer.fenced = errors.Is(err, store.ErrFenced)
	c.history.Add(called, input, answer)
}

func (c *claimant) register(ctx context.Context, t *testing.T) {
	for ctx.Err() == nil {
		called := c.history.Now()
		o, err := c.store.Register(ctx, c.node, claimTTL)
		answered := c.history.Now()
		c.history.mu.Lock()
		c.history.registrations = append(c.history.registrations,
			registration{c.node, o.Incarnation, called, answered})
		if err == nil {
			c.history.renewals = append(c.history.renewals,
				renewal{o, called, called + int64(claimTTL), answered})
		}
		c.history.mu.Unlock()
		if err == nil {
			c.owner = o
			return
		}
		away(t, err)
	}
}

func (c *claimant) renew(ctx context.Context, t *testing.T) {
	called := c.history.Now()
	err := c.store.Renew(ctx, c.owner, claimTTL)
	if err == nil {
		c.history.mu.Lock()
		c.history.renewals = append(c.history.renewals,
			renewal{c.owner, called, called + int64(claimTTL), c.history.Now()})
		c.history.mu.Unlock()
	} else if !away(t, err) {
		c.register(ctx, t) // it keeps what it holds, as a process that was frozen does
	}
}

func chunkName(id store.ChunkID) string { return fmt.Sprintf("%s/%d", id.Batch, id.Index) }

func (c *claimant) claim(ctx context.Context, t *testing.T, batch string) {
	var held []int
	for _, chunk := range c.held {
		if chunk.Batch == batch {
			held = append(held, chunk.Index)
		}
	}
	called := c.history.Now()
	chunks, err := c.store.ClaimChunks(ctx, c.owner, batch, "m", 1, held)
	if away(t, err) { // it may have claimed any of them
		for i := range claimChunks {
			c.history.AddUnknown(called, claimCall{object: chunkName(store.ChunkID{Batch: batch,
				Index: i}), what: "claim", owner: c.owner}, claimAnswer{unknown: true})
		}
		return
	}
	for _, chunk := range chunks {
		c.record(t, called, chunkName(chunk.ChunkID), "claim", 0, claimAnswer{epoch: chunk.Epoch},
			nil)
		c.held = append(c.held, chunk)
	}
}

// end finishes or releases one of the chunks that it believes to hold. Rarely it repeats that
// later, as one that got no answer.
func (c *claimant) end(ctx context.Context, t *testing.T) {
	i := c.random.IntN(len(c.held))
	chunk := c.held[i]
	what := "finish"
	send := func(ctx context.Context, o store.Owner, chunk store.Chunk) error {
		return c.store.FinishChunks(ctx, o, chunk)
	}
	if c.random.IntN(3) == 0 {
		what, send = "release", c.store.ReleaseChunk
	}
	called := c.history.Now()
	err := send(ctx, c.owner, chunk)
	c.record(t, called, chunkName(chunk.ChunkID), what, chunk.Epoch, claimAnswer{}, err)
	if c.random.IntN(4) > 0 {
		c.held = append(c.held[:i], c.held[i+1:]...)
	}
}

func (c *claimant) lead(ctx context.Context, t *testing.T, name string) {
	called := c.history.Now()
	if c.random.IntN(6) == 0 {
		err := c.store.Resign(ctx, c.owner, []string{name})
		c.record(t, called, name, "resign", 0, claimAnswer{}, err)
		return
	}
	epoch, others, err := c.store.Lead(ctx, c.owner, []string{name})
	c.record(t, called, name, "lead", 0, claimAnswer{epoch: epoch, leader: others[name]}, err)
}

// work does one thing at random.
func (c *claimant) work(ctx context.Context, t *testing.T, now int) {
	if time.Now().After(c.silent) {
		c.renew(ctx, t)
	}
	if c.random.IntN(60) == 0 {
		c.silent = time.Now().Add(claimTTL + time.Duration(c.random.IntN(500))*time.Millisecond)
	}
	switch n := c.random.IntN(10); {
	case n < 1:
		c.lead(ctx, t, fmt.Sprintf("runner-%d", now))
	case n < 6 || len(c.held) == 0:
		c.claim(ctx, t, fmt.Sprintf("b%d", min(claimBatches-1, now+c.random.IntN(3))))
	default:
		c.end(ctx, t)
	}
	if c.random.IntN(200) == 0 {
		c.register(ctx, t)
	}
	time.Sleep(time.Duration(c.random.IntN(8)) * time.Millisecond)
}

// runClaims has processes claim and lead for a time, while a fault happens now and then, and
// returns the calls.
func runClaims(
	t *testing.T, server *testpostgres.Server, lasts time.Duration, fault func(n int),
	wrap func(s claimStore, database string) claimStore,
) []porcupine.Operation {
	t.Helper()
	random := seeded(t)
	database := server.NewDatabase(t)
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte(testpostgres.Password), 0o600); err != nil {
		t.Fatal(err)
	}
	config := postgres.DefaultConfig()
	config.URL = fmt.Sprintf("postgres://%s@127.0.0.1:%d/%s?sslmode=disable", testpostgres.User,
		server.Port, database)
	config.PasswordFile, config.Timeout = password, 2*time.Second
	h := &claimHistory{History: NewHistory()}
	working, stop := context.WithCancel(t.Context())
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	var last *postgres.DB
	began := time.Now()
	for i := range 4 {
		db, err := postgres.Open(t.Context(), config, postgres.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		if last = db; i == 0 {
			addClaimBatches(t, db)
			began = time.Now()
		}
		c := &claimant{node: fmt.Sprint("n", i), store: db, history: h,
			random: rand.New(rand.NewPCG(random.Uint64(), uint64(i)))}
		if wrap != nil {
			c.store = wrap(db, database)
		}
		all.Go(func() {
			c.register(t.Context(), t)
			for working.Err() == nil {
				share := float64(time.Since(began)) / float64(lasts)
				c.work(t.Context(), t, int(share*claimBatches))
			}
		})
	}
	for n := 0; time.Since(began) < lasts; n++ {
		time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
		fault(n)
	}
	stop()
	all.Wait()
	for i := range claimBatches {
		called := h.Now()
		chunks, err := last.Chunks(t.Context(), fmt.Sprint("b", i))
		if err != nil {
			t.Fatal(err)
		}
		for _, chunk := range chunks {
			h.Add(called, claimCall{object: chunkName(chunk.ChunkID), what: "read"},
				claimAnswer{epoch: chunk.Epoch, done: chunk.Done})
		}
	}
	calls := h.complete()
	what := map[string]int{}
	for _, o := range calls {
		what[o.Input.(claimCall).what]++
		if o.Return == math.MaxInt64 {
			what["without an answer"]++
		}
		if o.Output.(claimAnswer).fenced {
			what["fenced"]++
		}
	}
	t.Logf("%d calls: %v", len(calls), what)
	return calls
}

func addClaimBatches(t *testing.T, db *postgres.DB) {
	t.Helper()
	for i := range claimBatches {
		id := fmt.Sprint("b", i)
		err := db.CreateBatch(t.Context(), store.Batch{ID: id, Tenant: "t",
			State: store.InProgress, Endpoint: "/v1/embeddings", Window: "24h",
			CreatedAt: time.Now(), Models: []store.ModelLines{{Model: "m", Lines: 2}}})
		var chunks []store.Chunk
		for n := range claimChunks {
			chunks = append(chunks, store.Chunk{ChunkID: store.ChunkID{Batch: id, Index: n},
				Model: "m", First: n, Count: 1})
		}
		if err == nil {
			err = db.AddChunks(t.Context(), id, chunks)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Claims, leases and leaders are linearizable while PostgreSQL is killed and its connections are
// cut, and while owners are silent for longer than their leases.
func TestChaosClaimsAreLinearizable(t *testing.T) {
	long(t, "a fault of the suite of chaos")
	t.Parallel()
	tr := begin(t, "claims and leaders, PostgreSQL killed and cut off")
	server := testpostgres.Start(t)
	calls := runClaims(t, server, sized(15*time.Second, 3*time.Minute), func(n int) {
		if tr.Tried++; n%5 == 4 {
			server.Kill(t)
			server.Restart(t)
			return
		}
		server.Cut(t, "db1")
	}, nil)
	checkHistory(t, claimModel, calls)
}

// brokenFence finishes a chunk for whoever asks, also after its claim was lost.
type brokenFence struct {
	claimStore
	finish func(store.Chunk)
}

func (b brokenFence) FinishChunks(ctx context.Context, o store.Owner, chunks ...store.Chunk) error {
	err := b.claimStore.FinishChunks(ctx, o, chunks...)
	if errors.Is(err, store.ErrFenced) {
		b.finish(chunks[0])
		return nil
	}
	return err
}

// brokenEpochs claims as a store that forgets to count epochs.
type brokenEpochs struct{ claimStore }

func (b brokenEpochs) ClaimChunks(
	ctx context.Context, o store.Owner, batch, model string, n int, held []int,
) ([]store.Chunk, error) {
	chunks, err := b.claimStore.ClaimChunks(ctx, o, batch, model, n, held)
	for i := range chunks {
		chunks[i].Epoch = 1
	}
	return chunks, err
}

// The check of claims finds stores whose fence or whose epochs are broken.
func TestClaimHistoryFindsBrokenStores(t *testing.T) {
	t.Parallel()
	server := testpostgres.Start(t)
	for name, wrap := range map[string]func(claimStore, string) claimStore{
		"a finish without a fence": func(s claimStore, database string) claimStore {
			return brokenFence{s, func(c store.Chunk) {
				server.Exec(t, database,
					"UPDATE chunks SET done = true WHERE batch = $1 AND idx = $2", c.Batch, c.Index)
			}}
		},
		"epochs that do not grow": func(s claimStore, _ string) claimStore {
			return brokenEpochs{s}
		},
	} {
		calls := runClaims(t, server, 4*time.Second, func(int) {}, wrap)
		if porcupine.CheckOperations(claimModel.ToModel(), calls) {
			t.Errorf("%s: not found in %d calls", name, len(calls))
		}
	}
}
