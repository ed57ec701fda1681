package storetest

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

func finishedChunkCountsOnce(t *testing.T, m Store, _ *clock) {
	ctx := t.Context()
	addBatch(t, m, "b", 3)
	o := got(m.Register(ctx, "n", time.Minute))(t)
	chunks := got(m.ClaimChunks(ctx, o, "b", "m", 3, allHeld))(t)
	count := func(what string, completed, failed int) {
		t.Helper()
		p := readProgress(t, m, "b")["b"]
		wantEqual(t, what, [2]int{p.Completed, p.Failed}, [2]int{completed, failed})
	}
	must(t, m.PostProgress(ctx, o, map[string]store.ProgressPost{"b": {
		Progress: store.Progress{Completed: 12, Failed: 3},
		Chunks: []store.ChunkProgress{
			{Index: chunks[0].Index, Epoch: chunks[0].Epoch, Completed: 7, Failed: 1},
			{Index: chunks[2].Index, Epoch: chunks[2].Epoch, Completed: 5, Failed: 2},
		},
	}}))
	count("before any is done", 12, 3)
	first := chunks[0]
	first.Tally = store.Tally{Completed: 9, Failed: 1}
	must(t, m.FinishChunks(ctx, o, first))
	count("after a chunk of which 7 and 1 were posted", 14, 3)
	must(t, m.FinishChunks(ctx, o, first))
	count("after the same again", 14, 3)
	second := chunks[1]
	second.Tally = store.Tally{Completed: 10}
	must(t, m.FinishChunks(ctx, o, second))
	count("after a chunk of which nothing was posted", 24, 3)
	stale := chunks[2]
	stale.Epoch--
	wantErr(t, "finish by an old epoch", m.FinishChunks(ctx, o, stale), store.ErrFenced)
	count("after a finish that was refused", 24, 3)

	other := got(m.Register(ctx, "n2", time.Minute))(t)
	must(t, m.ReleaseChunk(ctx, o, chunks[2]))
	count("after a chunk is given back", 24, 3)
	again := got(m.ClaimChunks(ctx, other, "b", "m", 1, allHeld))(t)[0]
	must(t, m.PostProgress(ctx, other, map[string]store.ProgressPost{"b": {
		Progress: store.Progress{Completed: 6, Failed: 2},
		Chunks: []store.ChunkProgress{
			{Index: again.Index, Epoch: again.Epoch, Completed: 6, Failed: 2}},
	}}))
	count("after another owner has posted the chunk too", 25, 3)
}

func progressIsSummed(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	addBatch(t, m, "b1", 2)
	addBatch(t, m, "b2", 1)
	addBatch(t, m, "silent", 1)
	now := c.Now().Truncate(time.Microsecond)
	first, second := got(m.Register(ctx, "n1", time.Minute))(t),
		got(m.Register(ctx, "n2", time.Hour))(t)
	must(t, m.PostProgress(ctx, first, map[string]store.ProgressPost{
		"b1": post(store.Progress{Completed: 100}), // replaced below
		"b2": post(store.Progress{Completed: 1, UpdatedAt: now}),
	}))
	must(t, m.PostProgress(ctx, first, map[string]store.ProgressPost{
		"b1": post(store.Progress{Completed: 10, InFlight: 2, Attempts: 5, Waiting: "yielding",
			UpdatedAt: now}),
		"deleted": post(store.Progress{Completed: 1}),
	}))
	must(t, m.PostProgress(ctx, second, map[string]store.ProgressPost{
		"b1": post(store.Progress{Completed: 20, Failed: 3, LinesPerSecond: 1.5,
			Waiting: "at limit", UpdatedAt: now.Add(time.Second)}),
	}))
	read := func() map[string]store.Progress {
		t.Helper()
		return readProgress(t, m, "b1", "b2", "silent", "unknown")
	}
	wantEqual(t, "progress", read(), map[string]store.Progress{
		"b1": {Completed: 30, Failed: 3, InFlight: 2, Attempts: 5, LinesPerSecond: 1.5,
			Waiting: "at limit", UpdatedAt: now.Add(time.Second)},
		"b2": {Completed: 1, UpdatedAt: now},
	})

	// What a done chunk holds stays, whatever becomes of the owners' words.
	chunk := got(m.ClaimChunks(ctx, second, "b1", "m", 1, allHeld))(t)[0]
	chunk.Tally = store.Tally{Completed: 7, Failed: 2}
	must(t, m.FinishChunks(ctx, second, chunk))
	c.advance(time.Minute) // the first owner's lease is over
	wantEqual(t, "progress after the end of a lease", read(), map[string]store.Progress{
		"b1": {Completed: 27, Failed: 5, LinesPerSecond: 1.5, Waiting: "at limit",
			UpdatedAt: now.Add(time.Second)},
	})
	must(t, m.Unregister(ctx, second))
	wantEqual(t, "progress of done chunks", read(),
		map[string]store.Progress{"b1": {Completed: 7, Failed: 2}})
	// A board that knows no leases takes it.
	_ = m.PostProgress(ctx, second, map[string]store.ProgressPost{
		"b1": post(store.Progress{Completed: 1})})
	wantEqual(t, "progress after a post of an owner that has unregistered",
		readProgress(t, m, "b1"),
		map[string]store.Progress{"b1": {Completed: 7, Failed: 2}})
	wantEqual(t, "progress of nothing", readProgress(t, m), map[string]store.Progress{})
}

func progressOfNewestOwner(t *testing.T, m Store, _ *clock) {
	ctx := t.Context()
	addBatch(t, m, "b", 1)
	old := got(m.Register(ctx, "n", time.Minute))(t)
	must(t, m.PostProgress(ctx, old, map[string]store.ProgressPost{
		"b": post(store.Progress{Completed: 1})}))
	young := got(m.Register(ctx, "n", time.Minute))(t)
	wantEqual(t, "progress after registering again", readProgress(t, m, "b"),
		map[string]store.Progress{})
	must(t, m.PostProgress(ctx, young, map[string]store.ProgressPost{
		"b": post(store.Progress{Completed: 2})}))
	_ = m.PostProgress(ctx, old, map[string]store.ProgressPost{
		"b": post(store.Progress{Completed: 3})})
	wantEqual(t, "progress after a post of the older incarnation", readProgress(t, m, "b"),
		map[string]store.Progress{"b": {Completed: 2}})
}

// forecastsAreJoined checks that the processes that lead different models of a batch make one
// forecast of it.
func forecastsAreJoined(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	addBatch(t, m, "b", 2)
	at := func(minutes int) time.Time {
		return c.Now().Truncate(time.Second).Add(time.Duration(minutes) * time.Minute).UTC()
	}
	fine := store.Forecast{Verdict: store.VerdictOK, Finish: at(20), Earliest: at(10),
		Latest: at(60)}
	late := store.Forecast{Verdict: store.VerdictAtRisk, Finish: at(30), Earliest: at(9),
		Latest: at(50)}
	forecast := func(node string, f store.Forecast) store.Owner {
		t.Helper()
		o := got(m.Register(ctx, node, time.Minute))(t)
		must(t, m.PostProgress(ctx, o, map[string]store.ProgressPost{
			"b": post(store.Progress{Forecast: f, Leads: f != store.Forecast{}})}))
		return o
	}
	read := func(what string, want store.Forecast) {
		t.Helper()
		wantEqual(t, what, readProgress(t, m, "b")["b"].Forecast, want)
		wantEqual(t, what+" alone", got(store.ReadOutlooks(ctx, m, m, []string{"b", "c"}))(t),
			map[string]store.Outlook{"b": {Forecast: want}})
	}
	forecast("n1", fine)
	read("forecast of one process", fine)
	forecast("n2", store.Forecast{})
	read("beside a process that leads nothing", fine)
	o := forecast("n3", late)
	read("of two processes", store.Forecast{Verdict: store.VerdictAtRisk, Finish: at(30),
		Earliest: at(10), Latest: at(60)})
	forecast("n4", store.Forecast{Verdict: store.VerdictInfeasible})
	read("with one whose end is unknown", store.Forecast{Verdict: store.VerdictInfeasible})
	must(t, m.Unregister(ctx, o))
	c.advance(time.Minute)
	forecast("n1", fine)
	read("after the others have ended", fine)
}

// post is the progress of a dispatcher that holds no chunks, or runs an older release.
func post(p store.Progress) store.ProgressPost { return store.ProgressPost{Progress: p} }

func readProgress(t testing.TB, m Store, batches ...string) map[string]store.Progress {
	t.Helper()
	return got(store.ReadProgress(t.Context(), m, m, batches, nil))(t)
}
