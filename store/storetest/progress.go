package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

// settler is FinishChunk or ReleaseChunk.
type settler = func(ctx context.Context, o store.Owner, c store.Chunk) error

func progressAdds(t *testing.T, m store.Metadata, c *clock) {
	ctx := t.Context()
	layOut(t, m, "b1", 2)
	layOut(t, m, "b2", 1)
	layOut(t, m, "silent", 1)
	now := c.Now().Truncate(time.Microsecond)
	first, second := got(m.Register(ctx, "n1", time.Minute))(t), got(m.Register(ctx, "n2", time.Hour))(t)
	must(t, m.PostProgress(ctx, first, map[string]store.Progress{
		"b1": {Completed: 100}, // replaced below
		"b2": {Completed: 1, UpdatedAt: now},
	}))
	must(t, m.PostProgress(ctx, first, map[string]store.Progress{
		"b1":      {Completed: 10, InFlight: 2, Attempts: 5, Waiting: "yielding", UpdatedAt: now},
		"deleted": {Completed: 1},
	}))
	must(t, m.PostProgress(ctx, second, map[string]store.Progress{
		"b1": {Completed: 20, Failed: 3, LinesPerSecond: 1.5, Waiting: "at limit", UpdatedAt: now.Add(time.Second)},
	}))
	read := func() map[string]store.Progress {
		t.Helper()
		return got(m.Progress(ctx, []string{"b1", "b2", "silent", "unknown"}))(t)
	}
	wantEqual(t, "progress", read(), map[string]store.Progress{
		"b1": {Completed: 30, Failed: 3, InFlight: 2, Attempts: 5, LinesPerSecond: 1.5, Waiting: "at limit", UpdatedAt: now.Add(time.Second)},
		"b2": {Completed: 1, UpdatedAt: now},
	})

	// What a done chunk holds stays, whatever becomes of the owners' words.
	chunk := got(m.ClaimChunks(ctx, second, "b1", "m", 1))(t)[0]
	chunk.Tally = store.Tally{Completed: 7, Failed: 2}
	must(t, m.FinishChunk(ctx, second, chunk))
	c.advance(time.Minute) // the first owner's lease is over
	wantEqual(t, "progress of the living", read(), map[string]store.Progress{
		"b1": {Completed: 27, Failed: 5, LinesPerSecond: 1.5, Waiting: "at limit", UpdatedAt: now.Add(time.Second)},
	})
	must(t, m.Unregister(ctx, second))
	wantEqual(t, "progress of done chunks", read(), map[string]store.Progress{"b1": {Completed: 7, Failed: 2}})
	wantErr(t, "post after unregistering", m.PostProgress(ctx, second, map[string]store.Progress{"b1": {}}), store.ErrFenced)
	wantEqual(t, "progress of nothing", got(m.Progress(ctx, nil))(t), map[string]store.Progress{})
}
