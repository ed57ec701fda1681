package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// TestPortable runs the suite for Portable. It uses all interfaces for records.
func TestPortable(t *testing.T, open Open) {
	t.Run("rows move to another store", func(t *testing.T) {
		c := newClock()
		from, to := open(t, c.Now), open(t, c.Now)
		rowsMove(t, from, to, c)
	})
	run(t, open, []test{
		{"the state of a move is stored", movesAreStored},
		{"owners are known with their leases", ownersAreKnown},
	})
}

// rowsOf returns all rows of a kind.
func rowsOf(t testing.TB, m Store, kind store.RowKind) (rows []store.Row) {
	t.Helper()
	for row, err := range m.ExportRows(t.Context(), kind) {
		must(t, err)
		rows = append(rows, row)
	}
	for i := 1; i < len(rows); i++ {
		if rows[i-1].Key.Compare(rows[i].Key) >= 0 {
			t.Errorf("%s: %v is exported before %v", kind, rows[i-1].Key, rows[i].Key)
		}
	}
	return rows
}

// fill makes rows of each kind.
func fill(t testing.TB, m Store, c *clock) (running store.Batch) {
	t.Helper()
	ctx := t.Context()
	f := newFile("f", "t")
	f.IndexKey, f.BlobKey = "files/f.index", "files/f"
	f.Summary = &batchfile.Summary{Lines: 7, Bytes: 99}
	must(t, m.CreateFile(ctx, f))
	expired := newFile("expired", "t")
	expired.ExpiresAt = c.Now().Add(-time.Hour)
	must(t, m.CreateFile(ctx, expired))
	for _, id := range []string{"u", "ended", "over"} {
		must(t, m.CreateUpload(ctx, store.Upload{ID: id, Tenant: "t", State: store.UploadPending,
			CreatedAt: c.Now(), ExpiresAt: c.Now().Add(time.Hour)}))
	}
	must(t, m.AddPart(ctx, store.Part{ID: "p", UploadID: "u", Bytes: 5, BlobKey: "uploads/u/p",
		CreatedAt: c.Now()}))
	got(m.CompleteUpload(ctx, "t", "ended", newFile("whole", "t")))(t)
	got(m.CancelUpload(ctx, "t", "over"))(t)

	b := newBatch("b", "t")
	b.Inputs = []store.Input{{FileID: "f", BlobKey: "files/f", IndexKey: "files/f.index", Lines: 7}}
	b.Parameters = &store.Parameters{Defaults: []store.ParameterRule{{Model: "m"}}}
	b.Metadata = map[string]string{"k": "v"}
	must(t, m.CreateBatch(ctx, b))
	b = got(m.Batch(ctx, "t", "b"))(t)
	b.State, b.InProgressAt = store.InProgress, c.Now()
	b = got(m.UpdateBatch(ctx, b))(t)
	old := newBatch("old", "t")
	old.State, old.FailedAt = store.Failed, c.Now()
	must(t, m.CreateBatch(ctx, old))

	o := got(m.Register(ctx, "n", time.Hour))(t)
	must(t, m.AddChunks(ctx, "b", []store.Chunk{
		{ChunkID: store.ChunkID{Batch: "b", Index: 0}, Model: "a\xff", First: 0, Count: 3},
		{ChunkID: store.ChunkID{Batch: "b", Index: 1}, Model: "a\xff", First: 3, Count: 4}}))
	claimed := got(m.ClaimChunks(ctx, o, "b", "a\xff", 2, nil))(t)
	claimed[0].Tally = store.Tally{Completed: 2, Failed: 1,
		Usage: batchfile.Usage{InputTokens: 4}}
	must(t, m.FinishChunks(ctx, o, claimed[0]))
	for _, name := range []string{"a\xff", "\\x", "zz", "ü", ""} {
		_, _, err := m.Remember(ctx, "t", "key "+name, "value"+name, time.Hour)
		must(t, err)
		_, _, err = m.Remember(ctx, name+"t", "key", "value"+name, time.Hour)
		must(t, err)
	}
	must(t, m.SaveLearned(ctx, o, []store.LearnedState{{Pool: "p", Kind: "x", Data: []byte{0}},
		{Pool: "p", Kind: "y", Data: []byte{}}}))
	must(t, m.AddPoolHours(ctx, o, 1, []store.PoolHour{{Pool: "a\xff", Hour: noon, Allowed: 0.5,
		Tokens: store.Lateness{Requests: 1.5}}, {Pool: "zz", Hour: noon, Lines: 3},
		{Pool: "zz", Hour: noon.Add(time.Hour), LineTokens: 1 << 40}}, noon))
	must(t, m.AddUsage(ctx, o, 1, []store.Used{{Tenant: "t", Model: "a\xff", Class: "flex",
		Hour: noon, Requests: 3, Failed: 1, Tokens: tokens(5)}, {Tenant: "t", Model: "a\xff",
		Class: "critical", Hour: noon, Requests: 2}}, noon))
	must(t, m.NoteKeys(ctx, []store.KeyUse{{Hash: "a\xff", At: noon}, {Hash: "zz", At: noon},
		{Hash: "\\x", At: noon.Add(time.Hour)}}, noon))
	_, _, err := m.Lock(ctx, o, "lock")
	must(t, err)
	_, _, err = m.Lead(ctx, o, []string{"model"})
	must(t, err)
	_, at, err := m.ChangedBatches(ctx, "", 1)
	must(t, err)
	must(t, m.AddNotices(ctx, "hook", "", at, []store.Notice{
		{ID: "e1", Batch: "b", Event: "x", CreatedAt: c.Now(), Due: c.Now(), Attempts: 2},
		{ID: "e2", Batch: "old", Event: "y", CreatedAt: c.Now()}}))
	return b
}

func rowsMove(t *testing.T, from, to Store, c *clock) {
	ctx := t.Context()
	running := fill(t, from, c)
	for _, kind := range store.RowKinds {
		rows := rowsOf(t, from, kind)
		if len(rows) == 0 {
			t.Errorf("the store has no %s", kind)
		}
		for range 2 { // importing again changes nothing
			must(t, to.ImportRows(ctx, kind, rows, nil))
			wantEqual(t, "imported "+string(kind), rowsOf(t, to, kind), rows)
		}
	}
	must(t, to.SetMove(ctx, store.Move{Installation: "i", At: c.Now()}))
	wantEqual(t, "used bytes", got(to.UsedBytes(ctx, "t"))(t), got(from.UsedBytes(ctx, "t"))(t))
	wantEqual(t, "batch", got(to.Batch(ctx, "t", "b"))(t), running)
	wantEqual(t, "parameters", got(to.Parameters(ctx, "b"))(t), got(from.Parameters(ctx, "b"))(t))
	page := got(to.ListBatchIDs(ctx, "t", store.BatchQuery{MetadataKey: "k"}))(t)
	wantEqual(t, "batches by metadata", page.Items, []string{"b"})
	wantDropped(t, to, "blobs of running batches", "", []string{"files/f", "files/f.index"})

	// Chunks are free, and epochs grow.
	o := got(to.Register(ctx, "n", time.Hour))(t)
	claimed := got(to.ClaimChunks(ctx, o, "b", "a\xff", 2, nil))(t)
	if len(claimed) != 1 || claimed[0].Epoch != 2 {
		t.Errorf("claimed %+v, want chunk 1 at epoch 2", claimed)
	}
	epoch, _, err := to.Lock(ctx, o, "lock")
	must(t, err)
	wantEqual(t, "epoch of the lock", epoch, int64(2))
	first, _, err := from.Lead(ctx, got(from.Register(ctx, "n", time.Hour))(t), []string{"other"})
	must(t, err)
	epoch, _, err = to.Lead(ctx, o, []string{"model"})
	must(t, err)
	wantEqual(t, "epoch of the leadership", epoch, first)
	wantEqual(t, "endpoints", got(from.NoticeEndpoints(ctx))(t), []string{"hook"})
	wantEqual(t, "endpoints of the other store", len(got(to.NoticeEndpoints(ctx))(t)), 0)

	// New rows come after the imported ones.
	must(t, to.CreateFile(ctx, newFile("later", "t")))
	files := rowsOf(t, to, store.FileRows)
	wantEqual(t, "the last file", files[len(files)-1].Value.(store.File).ID, "later")

	rowsAreReplaced(t, from, to)
}

func rowsAreReplaced(t *testing.T, from, to Store) {
	ctx := t.Context()
	_, cursor, err := to.ChangedBatches(ctx, "", 1)
	must(t, err)
	rows := rowsOf(t, from, store.BatchRows)
	must(t, to.ImportRows(ctx, store.BatchRows, rows[:1], []store.RowKey{rows[1].Key}))
	wantEqual(t, "batches", rowsOf(t, to, store.BatchRows), rows[:1])
	wantEqual(t, "chunks of the replaced batch", len(rowsOf(t, to, store.ChunkRows)), 0)
	ids, _, err := to.ChangedBatches(ctx, cursor, 10)
	must(t, err)
	wantEqual(t, "changed", ids, []string{"b"})
	for _, kind := range store.RowKinds {
		var keys []store.RowKey
		for _, row := range rowsOf(t, to, kind) {
			if kind != store.EpochRows || row.Key.Name != "" {
				keys = append(keys, row.Key)
			}
		}
		must(t, to.ImportRows(ctx, kind, nil, keys))
	}
	wantEqual(t, "used bytes of the emptied store", got(to.UsedBytes(ctx, "t"))(t),
		int64(0))

	canceled, cancel := context.WithCancel(ctx)
	cancel()
	wantErr(t, "import", to.ImportRows(canceled, store.BatchRows, rows, nil), context.Canceled)
	for _, err := range from.ExportRows(canceled, store.BatchRows) {
		wantErr(t, "export", err, context.Canceled)
	}
	for range from.ExportRows(ctx, store.BatchRows) {
		break
	}
}

func movesAreStored(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	first := got(m.Move(ctx))(t)
	wantEqual(t, "first state", first.State, store.MoveNone)
	want := store.Move{Installation: "i", State: store.MoveReceiving, Peer: "p",
		At: c.Now().UTC().Truncate(time.Microsecond)}
	must(t, m.SetMove(ctx, want))
	wantEqual(t, "state", got(m.Move(ctx))(t), want)
	want.State = store.MoveNone
	must(t, m.SetMove(ctx, want))
	wantEqual(t, "state", got(m.Move(ctx))(t), want)
}

func ownersAreKnown(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	a := got(m.Register(ctx, "a", time.Minute))(t)
	b := got(m.Register(ctx, "b", time.Hour))(t)
	c.advance(2 * time.Minute)
	wantEqual(t, "owners", got(m.KnownOwners(ctx))(t),
		[]store.KnownOwner{{Owner: a, LeaseLeft: -time.Minute},
			{Owner: b, LeaseLeft: 58 * time.Minute}})
}
