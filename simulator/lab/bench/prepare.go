package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/sqlite"
)

// Properties of the batches in the prepared store. Batches of an even model have the kind even, so
// that a listing by an even model and the kind odd finds nothing.
const (
	preparedModels = 10
	preparedTeams  = 100
	// absentModel is a model that no runner serves.
	absentModel = "absent"
)

// prepareStore creates a data directory with many ended and many waiting batches. Half of the
// waiting ones are paused, half need a model that no runner serves. It is created once; each daemon
// finds it as the one before left it.
func (l *environment) prepareStore(ctx context.Context) (string, error) {
	if l.prepared != "" {
		return l.prepared, nil
	}
	l.logf("preparing a store of %d ended and %d waiting batches", l.sizes.endedBatches,
		l.sizes.waitingBatches)
	data, err := l.newDir("prepared")
	if err != nil {
		return "", err
	}
	database := filepath.Join(data, "tidefill.db")
	scratch, err := l.scratchDir()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	draft := filepath.Join(scratch, "tidefill.db")
	if err := l.fill(ctx, draft); err != nil {
		return "", err
	}
	if err := copyFile(database, draft); err != nil {
		return "", err
	}
	l.prepared = data
	return data, nil
}

// scratchDir returns a directory in memory if the system has one, because each batch is a
// transaction, and a sync is free there.
func (l *environment) scratchDir() (string, error) {
	if dir, err := os.MkdirTemp("/dev/shm", "tidefill-bench-"); err == nil {
		return dir, nil
	}
	return l.newDir("scratch")
}

func (l *environment) fill(ctx context.Context, path string) (err error) {
	db, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	now := time.Now()
	for i := range l.sizes.endedBatches {
		if err := db.CreateBatch(ctx, endedBatch(i, now)); err != nil {
			return err
		}
	}
	for i := range l.sizes.waitingBatches {
		b := waitingBatch(i, now)
		in := b.Inputs[0]
		file := store.File{ID: in.FileID, Tenant: b.Tenant,
			Purpose: "batch", Filename: "input.jsonl", CreatedAt: now, BlobKey: in.BlobKey,
			IndexKey: in.IndexKey}
		if err := db.CreateBatch(ctx, b, file); err != nil {
			return err
		}
		chunk := store.Chunk{ChunkID: store.ChunkID{Batch: b.ID}, Model: b.Models[0].Model,
			Count: b.Counts.Total}
		if err := db.AddChunks(ctx, b.ID, []store.Chunk{chunk}); err != nil {
			return err
		}
	}
	return nil
}

func endedID(i int) string { return fmt.Sprintf("batch_ended%012d", i) }

// endedBatch returns a batch that ended in the last months, one for each minute.
func endedBatch(i int, now time.Time) store.Batch {
	created := now.Add(-time.Duration(i+1) * time.Minute)
	b := preparedBatch(endedID(i), fmt.Sprintf("model-%d", i%preparedModels), created)
	b.Metadata = map[string]string{"team": fmt.Sprintf("team-%d", i%preparedTeams),
		"kind": []string{"even", "odd"}[i%2]}
	b.InProgressAt, b.FinalizingAt = created.Add(time.Second), created.Add(time.Hour)
	b.Counts.Completed = b.Counts.Total
	b.Usage = &batchfile.Usage{InputTokens: 50_000, OutputTokens: 20_000, TotalTokens: 70_000}
	switch i % 20 {
	case 18:
		b.State, b.FailedAt = store.Failed, b.FinalizingAt
	case 19:
		b.State, b.CancelledAt = store.Cancelled, b.FinalizingAt
	default:
		b.State, b.CompletedAt = store.Completed, b.FinalizingAt
		b.Outputs[0].HasOutput = true
	}
	return b
}

// waitingBatch returns a batch that is admitted and can't run.
func waitingBatch(i int, now time.Time) store.Batch {
	b := preparedBatch(fmt.Sprintf("batch_waiting%010d", i), model, now)
	b.State, b.InProgressAt = store.InProgress, now
	if b.Paused = i%2 == 0; !b.Paused {
		b.Models[0].Model = absentModel
	}
	return b
}

func preparedBatch(id, model string, created time.Time) store.Batch {
	const lines = 100
	return store.Batch{
		ID: id, Tenant: "default", Endpoint: "/v1/chat/completions", Window: "24h",
		CreatedAt: created, Deadline: created.Add(24 * time.Hour),
		Inputs: []store.Input{{FileID: "file-" + id, BlobKey: "files/file-" + id,
			IndexKey: "files/file-" + id + ".index", Lines: lines}},
		Models: []store.ModelLines{{Model: model, Lines: lines}},
		Outputs: []store.Output{{Input: -1, OutputID: "file-output-" + id,
			ErrorID: "file-errors-" + id}},
		Counts:      store.Counts{Total: lines},
		PromptBytes: 50_000, MaxTokens: 25_600,
	}
}

func copyFile(to, from string) error {
	text, err := os.Open(from)
	if err != nil {
		return err
	}
	defer text.Close()
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = f.ReadFrom(text)
	return errors.Join(err, f.Sync(), f.Close())
}
