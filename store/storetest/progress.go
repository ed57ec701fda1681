package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

// settler is FinishChunk or ReleaseChunk.
type settler = func(ctx context.Context, o store.Owner, c store.Chunk) error

func finishedChunkCountsOnce(t *testing.T, m Store, _ *clock) {
	ctx := t.Context()
	layOut(t, m, "b", 3)
	o := got(m.Register(ctx, "n", time.Minute))(t)
	chunks := got(m.ClaimChunks(ctx, o, "b", "m", 3, allInHand))(t)
	count := func(what string, completed, failed int) {
		t.Helper()
		p := got(m.Progress(ctx, []string{"b"}))(t)["b"]
		wantEqual(t, what, [2]int{p.Completed, p.Failed}, [2]int{completed, failed})
	}
	must(t, m.PostProgress(ctx, o, map[string]store.Progress{"b": {Completed: 12, Failed: 3}}))
	first := chunks[0]
	first.Tally, first.Posted = store.Tally{Completed: 9, Failed: 1},
		store.Tally{Completed: 7, Failed: 1}
	must(t, m.FinishChunk(ctx, o, first))
	count("after a chunk of which 7 and 1 were posted", 14, 3)
	must(t, m.FinishChunk(ctx, o, first))
	count("after the same again", 14, 3)
	second := chunks[1]
	second.Tally = store.Tally{Completed: 10}
	must(t, m.FinishChunk(ctx, o, second))
	count("after a chunk of which nothing was posted", 24, 3)
	stale := chunks[2]
	stale.Epoch--
	stale.Posted = store.Tally{Completed: 5}
	wantErr(t, "finish by an old epoch", m.FinishChunk(ctx, o, stale), store.ErrFenced)
	count("after a finish that was refused", 24, 3)
}

func progressAdds(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	layOut(t, m, "b1", 2)
	layOut(t, m, "b2", 1)
	layOut(t, m, "silent", 1)
	now := c.Now().Truncate(time.Microsecond)
	first, second := got(m.Register(ctx, "n1", time.Minute))(t),
		got(m.Register(ctx, "n2", time.Hour))(t)
	must(t, m.PostProgress(ctx, first, map[string]store.Progress{
		"b1": {Completed: 100}, // replaced below
		"b2": {Completed: 1, UpdatedAt: now},
	}))
	must(t, m.PostProgress(ctx, first, map[string]store.Progress{
		"b1":      {Completed: 10, InFlight: 2, Attempts: 5, Waiting: "yielding", UpdatedAt: now},
		"deleted": {Completed: 1},
	}))
	must(t, m.PostProgress(ctx, second, map[string]store.Progress{
		"b1": {Completed: 20, Failed: 3, LinesPerSecond: 1.5, Waiting: "at limit",
			UpdatedAt: now.Add(time.Second)},
	}))
	read := func() map[string]store.Progress {
		t.Helper()
		return got(m.Progress(ctx, []string{"b1", "b2", "silent", "unknown"}))(t)
	}
	wantEqual(t, "progress", read(), map[string]store.Progress{
		"b1": {Completed: 30, Failed: 3, InFlight: 2, Attempts: 5, LinesPerSecond: 1.5,
			Waiting: "at limit", UpdatedAt: now.Add(time.Second)},
		"b2": {Completed: 1, UpdatedAt: now},
	})

	// What a done chunk holds stays, whatever becomes of the owners' words.
	chunk := got(m.ClaimChunks(ctx, second, "b1", "m", 1, allInHand))(t)[0]
	chunk.Tally = store.Tally{Completed: 7, Failed: 2}
	must(t, m.FinishChunk(ctx, second, chunk))
	c.advance(time.Minute) // the first owner's lease is over
	wantEqual(t, "progress of the living", read(), map[string]store.Progress{
		"b1": {Completed: 27, Failed: 5, LinesPerSecond: 1.5, Waiting: "at limit",
			UpdatedAt: now.Add(time.Second)},
	})
	must(t, m.Unregister(ctx, second))
	wantEqual(t, "progress of done chunks", read(),
		map[string]store.Progress{"b1": {Completed: 7, Failed: 2}})
	wantErr(t, "post after unregistering",
		m.PostProgress(ctx, second, map[string]store.Progress{"b1": {}}), store.ErrFenced)
	wantEqual(t, "progress of nothing", got(m.Progress(ctx, nil))(t), map[string]store.Progress{})
}
