package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

func newBatch(id, tenant string) store.Batch {
	return store.Batch{ID: id, Tenant: tenant, State: store.Validating,
		Endpoint: "/v1/chat/completions", Window: "24h",
		CreatedAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func batchesAreStored(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	b := newBatch("b1", "t1")
	b.CreatedAt = c.Now().In(time.FixedZone("west", -3600))
	b.Deadline = c.Now().Add(24 * time.Hour)
	b.Metadata = map[string]string{"run": "<7>", "": "empty key", "empty value": ""}
	b.Options = store.Options{Priority: -3, RetryOn: []int{500}, OutputLife: time.Hour}
	b.OptionsJSON, b.Apart = json.RawMessage(`{"priority":-3,"note":"a<b"}`), []string{"overrides"}
	parameters := store.Parameters{OptionsJSON: json.RawMessage(
		`{"priority":-3,"note":"a<b","overrides":{"temperature":0.50}}`),
		Overrides: []store.ParameterRule{{Model: "m", Parameters: map[string]json.RawMessage{
			"temperature": json.RawMessage("0.50")}}},
		Check: &store.AnswerRules{FinishReason: []string{"stop"}, Pattern: "<a&b>",
			Schema: json.RawMessage(`{"maximum":0.50}`)}}
	f := newFile("f", "t1")
	f.IndexKey = "files/f.index"
	must(t, m.CreateFile(ctx, f))
	b.Parameters = &parameters
	b.Inputs = []store.Input{{FileID: "f", BlobKey: "files/f", IndexKey: "files/f.index", Lines: 7}}
	b.Models = []store.ModelLines{{Model: "m", Lines: 7}}
	b.Outputs = []store.Output{{Input: -1, OutputID: "o", ErrorID: "e"}}
	b.Usage = &batchfile.Usage{InputTokens: 1 << 40}
	must(t, m.CreateBatch(ctx, b))
	wantErr(t, "create again", m.CreateBatch(ctx, newBatch("b1", "t2")), store.ErrExists)

	b.Version, b.Parameters = 1, nil
	b.CreatedAt = b.CreatedAt.UTC().Truncate(time.Microsecond)
	b.Deadline = b.Deadline.Truncate(time.Microsecond)
	wantEqual(t, "batch", got(m.Batch(ctx, "t1", "b1"))(t), b)
	wantEqual(t, "batch across tenants", got(m.Batch(ctx, "", "b1"))(t), b)
	_, err := m.Batch(ctx, "t2", "b1")
	wantErr(t, "load another tenant's batch", err, store.ErrNotFound)
	_, err = m.Batch(ctx, "t1", "b2")
	wantErr(t, "load an unknown batch", err, store.ErrNotFound)
	wantEqual(t, "listed batches", got(m.ListBatchIDs(ctx, "t1", store.BatchQuery{}))(t).Items,
		[]string{b.ID})
	_, err = m.Parameters(ctx, "b2")
	wantErr(t, "load the parameters of an unknown batch", err, store.ErrNotFound)
	must(t, m.CreateBatch(ctx, newBatch("plain", "t3")))
	wantEqual(t, "parameters of a batch without any", got(m.Parameters(ctx, "plain"))(t),
		store.Parameters{})
	updated := b
	updated.Paused = true
	b = got(m.UpdateBatch(ctx, updated))(t)
	wantEqual(t, "parameters after an update", got(m.Parameters(ctx, "b1"))(t), parameters)
	b.Tenant = "t2"
	_, err = m.UpdateBatch(ctx, b)
	wantErr(t, "update another tenant's batch", err, store.ErrNotFound)
}

func batchesAreCreatedWithFiles(t *testing.T, m Store, _ *clock) {
	ctx := t.Context()
	must(t, m.CreateBatch(ctx, newBatch("b1", "t"), newFile("f1", "t"), newFile("f2", "t")))
	for _, id := range []string{"f1", "f2"} {
		wantEqual(t, "file "+id, got(m.File(ctx, "t", id))(t), newFile(id, "t"))
	}
	wantErr(t, "create a batch that exists, with a file", m.CreateBatch(ctx, newBatch("b1", "t"),
		newFile("f3", "t")), store.ErrExists)
	_, err := m.File(ctx, "t", "f3")
	wantErr(t, "load the file of a batch that was refused", err, store.ErrNotFound)
	wantErr(t, "create a batch with a file that exists", m.CreateBatch(ctx, newBatch("b2", "t"),
		newFile("f4", "t"), newFile("f1", "t")), store.ErrExists)
	_, err = m.File(ctx, "t", "f4")
	wantErr(t, "load the file beside one that was refused", err, store.ErrNotFound)
	_, err = m.Batch(ctx, "t", "b2")
	wantErr(t, "load the batch of a file that was refused", err, store.ErrNotFound)
}

func batchesAreUpdated(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	must(t, m.CreateBatch(ctx, newBatch("b", "t")))
	first := got(m.Batch(ctx, "t", "b"))(t)
	first.State, first.InProgressAt = store.InProgress, c.Now()
	second := got(m.UpdateBatch(ctx, first))(t)
	if second.Version != 2 {
		t.Errorf("got version %d after one update, want 2", second.Version)
	}
	wantEqual(t, "stored batch", got(m.Batch(ctx, "t", "b"))(t), second)
	_, err := m.UpdateBatch(ctx, first)
	wantErr(t, "update by an old version", err, store.ErrConflict)
	wantEqual(t, "batch after the conflict", got(m.Batch(ctx, "t", "b"))(t), second)
	_, err = m.UpdateBatch(ctx, newBatch("unknown", "t"))
	wantErr(t, "update an unknown batch", err, store.ErrNotFound)

	stop := errors.New("stop")
	_, err = store.Modify(ctx, m, "t", "b", func(b *store.Batch) error {
		b.Reason = "not to be kept"
		return stop
	})
	wantErr(t, "modify with an error", err, stop)
	wantEqual(t, "batch after the error", got(m.Batch(ctx, "t", "b"))(t), second)
}

func terminalBatchesDoNotChange(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	for _, state := range []store.State{store.Completed, store.Failed, store.Expired,
		store.Cancelled} {
		id := string(state)
		must(t, m.CreateBatch(ctx, newBatch(id, "t")))
		must(t, m.AddChunks(ctx, id, newChunks(id, "m", 2)))
		_, err := m.DeleteBatch(ctx, "t", id)
		wantErr(t, "delete a batch that is not terminal", err, store.ErrConflict)

		b := got(m.Batch(ctx, "t", id))(t)
		b.State = state // without the time that belongs to it
		b = got(m.UpdateBatch(ctx, b))(t)
		b.Reason = "too late"
		_, err = m.UpdateBatch(ctx, b)
		wantErr(t, "update a "+id+" batch", err, store.ErrConflict)
		_, err = store.Modify(ctx, m, "t", id, func(*store.Batch) error { return nil })
		wantErr(t, "modify a "+id+" batch", err, store.ErrConflict)

		_, err = m.DeleteBatch(ctx, "other", id)
		wantErr(t, "delete another tenant's batch", err, store.ErrNotFound)
		b.Reason = ""
		wantEqual(t, "deleted batch", got(m.DeleteBatch(ctx, "t", id))(t), b)
		_, err = m.DeleteBatch(ctx, "t", id)
		wantErr(t, "delete twice", err, store.ErrNotFound)
		if chunks := got(m.Chunks(ctx, id))(t); len(chunks) != 0 {
			t.Errorf("deleted batch has chunks %v", chunks)
		}
	}
	if page := got(m.ListBatchIDs(ctx, "t", store.BatchQuery{}))(t); len(page.Items) != 0 {
		t.Errorf("deleted batches are listed: %v", page.Items)
	}
}

func batchesBecomeStale(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	start := c.Now()
	for i, state := range []store.State{store.Completed, store.Failed, store.Expired,
		store.Cancelled, store.InProgress} {
		id := string(state)
		must(t, m.CreateBatch(ctx, newBatch(id, "t")))
		ended := start.Add(time.Duration(i) * time.Hour)
		got(store.Modify(ctx, m, "t", id, func(b *store.Batch) error {
			b.State = state
			b.CompletedAt, b.FailedAt, b.ExpiredAt, b.CancelledAt = ended, ended, ended, ended
			return nil
		}))(t)
	}
	for _, test := range []struct {
		after time.Duration
		limit int
		want  []string
	}{
		{0, 10, nil},
		{time.Minute, 10, []string{"completed"}},
		{150 * time.Minute, 10, []string{"completed", "failed", "expired"}},
		{150 * time.Minute, 2, []string{"completed", "failed"}},
		{100 * time.Hour, 10, []string{"completed", "failed", "expired", "cancelled"}},
	} {
		var ids []string
		for _, b := range got(m.StaleBatches(ctx, start.Add(test.after), test.limit))(t) {
			ids = append(ids, b.ID)
		}
		wantEqual(t, fmt.Sprintf("stale after %s, limit %d", test.after, test.limit), ids,
			test.want)
	}
}

func concurrentUpdatesConflict(t *testing.T, m Store, _ *clock) {
	const writers, changes = 6, 15
	ctx := t.Context()
	must(t, m.CreateBatch(ctx, newBatch("b", "t")))
	var running sync.WaitGroup
	for range writers {
		running.Go(func() {
			for range changes {
				_, err := store.Modify(ctx, m, "t", "b", func(b *store.Batch) error {
					b.Counts.Completed++
					return nil
				})
				if err != nil {
					t.Errorf("modify: %v", err)
				}
			}
		})
	}
	running.Wait()
	b := got(m.Batch(ctx, "t", "b"))(t)
	if b.Counts.Completed != writers*changes || b.Version != writers*changes+1 {
		t.Errorf("got %d changes at version %d, want %d at %d", b.Counts.Completed, b.Version,
			writers*changes, writers*changes+1)
	}
}
