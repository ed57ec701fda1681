package storetest

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// TestLedger runs the suite for Ledger. It uses Ledger, Batches, Claims and Owners.
func TestLedger(t *testing.T, open Open) {
	run(t, open, []test{
		{"chunks are counted with their end", chunksAreCounted},
		{"usage stays when its batch goes", usageStays},
		{"saved usage counts once", usageCountsOnce},
		{"usage is summed up by bucket and group", usageIsGrouped},
		{"old usage goes", oldUsageGoes},
	})
}

func tokens(n int64) batchfile.Usage {
	return batchfile.Usage{InputTokens: n, OutputTokens: 2 * n, TotalTokens: 3 * n,
		CachedTokens: n / 2, ReasoningTokens: n / 4}
}

// all asks for all usage by hour, tenant, model and class.
var all = store.UsageQuery{Until: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), Width: time.Hour,
	ByTenant: true, ByModel: true, ByClass: true}

func chunksAreCounted(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	o := got(m.Register(ctx, "a", 3*time.Hour))(t)
	must(t, m.CreateBatch(ctx, newBatch("b", "t")))
	must(t, m.AddChunks(ctx, "b", append(newChunks("b", "m", 2),
		store.Chunk{ChunkID: store.ChunkID{Batch: "b", Index: 2}, Model: "\x00n", First: 20})))
	chunks := append(got(m.ClaimChunks(ctx, o, "b", "m", 2, nil))(t),
		got(m.ClaimChunks(ctx, o, "b", "\x00n", 1, []int{0, 1}))(t)...)
	for i := range chunks {
		chunks[i].Tally = store.Tally{Completed: 7, Failed: 1 + i, Usage: tokens(100)}
	}
	stale := chunks[1]
	stale.Epoch--
	wantErr(t, "one claim is not the newest", m.FinishChunks(ctx, o, chunks[0], stale),
		store.ErrFenced)
	wantEqual(t, "usage before the end", len(got(m.Usage(ctx, all))(t)), 0)
	hour := c.Now().UTC().Truncate(time.Hour)
	must(t, m.FinishChunks(ctx, o, chunks[0], chunks[2]))
	c.advance(time.Hour)
	must(t, m.FinishChunks(ctx, o, chunks...)) // the answer to the first may have got lost
	first := store.Used{Tenant: "t", Model: "m", Class: store.BatchClass, Hour: hour, Requests: 8,
		Failed: 1, Tokens: tokens(100)}
	other := store.Used{Tenant: "t", Model: "\x00n", Class: store.BatchClass, Hour: hour,
		Requests: 10, Failed: 3, Tokens: tokens(100)}
	second := store.Used{Tenant: "t", Model: "m", Class: store.BatchClass,
		Hour: hour.Add(time.Hour), Requests: 9, Failed: 2, Tokens: tokens(100)}
	wantEqual(t, "usage", got(m.Usage(ctx, all))(t), []store.Used{other, first, second})
	wantEqual(t, "hour of the chunk", got(m.Chunks(ctx, "b"))(t)[1].Counted, second.Hour)

	// What is done again counts again, in the hour in which it is done.
	must(t, m.ReopenChunk(ctx, chunks[0]))
	must(t, m.ReopenChunk(ctx, chunks[0]))
	wantEqual(t, "usage after a reopening", got(m.Usage(ctx, all))(t),
		[]store.Used{other, second})
	again := got(m.ClaimChunks(ctx, o, "b", "m", 1, []int{1, 2}))(t)[0]
	again.Tally = store.Tally{Completed: 10, Usage: tokens(4)}
	must(t, m.FinishChunks(ctx, o, again))
	second.Requests += 10
	second.Tokens.Add(tokens(4))
	wantEqual(t, "usage when it is done again", got(m.Usage(ctx, all))(t),
		[]store.Used{other, second})
}

func usageStays(t *testing.T, m Store, _ *clock) {
	ctx := t.Context()
	o := got(m.Register(ctx, "a", time.Hour))(t)
	addBatch(t, m, "b", 1)
	c := got(m.ClaimChunks(ctx, o, "b", "m", 1, nil))(t)[0]
	c.Tally = store.Tally{Completed: 10, Usage: tokens(8)}
	must(t, m.FinishChunks(ctx, o, c))
	b := got(m.Batch(ctx, "t", "b"))(t)
	b.State = store.Completed
	got(m.UpdateBatch(ctx, b))(t)
	got(m.DeleteBatch(ctx, "t", "b"))(t)
	used := got(m.Usage(ctx, all))(t)
	if len(used) != 1 || used[0].Requests != 10 || used[0].Tokens != tokens(8) {
		t.Errorf("usage of a deleted batch: %+v", used)
	}
}

func usageCountsOnce(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	o := got(m.Register(ctx, "a", time.Hour))(t)
	other := got(m.Register(ctx, "b", time.Hour))(t)
	one := []store.Used{{Tenant: "t", Model: "m", Class: "flex", Hour: noon, Requests: 1,
		Tokens: tokens(4)}}
	for _, number := range []int64{1, 1, 2, 2, 1, 5} {
		must(t, m.AddUsage(ctx, o, number, one, time.Time{}))
		must(t, m.AddUsage(ctx, other, number, one, time.Time{}))
	}
	requests := func() int64 { return got(m.Usage(ctx, all))(t)[0].Requests }
	wantEqual(t, "requests", requests(), int64(6))
	wantEqual(t, "tokens", got(m.Usage(ctx, all))(t)[0].Tokens, tokens(24))
	again := got(m.Register(ctx, "a", time.Minute))(t) // a restart counts from 1
	must(t, m.AddUsage(ctx, again, 1, one, time.Time{}))
	wantEqual(t, "requests after a restart", requests(), int64(7))
	wantErr(t, "usage of the superseded owner", m.AddUsage(ctx, o, 9, one, time.Time{}),
		store.ErrFenced)
	c.advance(2 * time.Minute)
	wantErr(t, "usage under a lease that has ended", m.AddUsage(ctx, again, 2, one, time.Time{}),
		store.ErrFenced)
	wantEqual(t, "requests at last", requests(), int64(7))
}

func usageIsGrouped(t *testing.T, m Store, _ *clock) {
	ctx := t.Context()
	o := got(m.Register(ctx, "a", time.Hour))(t)
	day := noon.Truncate(24 * time.Hour)
	var saved []store.Used
	for i, u := range []store.Used{
		{Tenant: "\x00a", Model: "m", Class: "flex", Hour: day.Add(23 * time.Hour)},
		{Tenant: "t", Model: "m", Class: "flex", Hour: day},
		{Tenant: "t", Model: "m", Class: "critical", Hour: day.Add(time.Hour)},
		{Tenant: "t", Model: "n\xff", Class: "flex", Hour: day.Add(25 * time.Hour)},
	} {
		u.Requests, u.Tokens = 1<<i, tokens(4<<i)
		saved = append(saved, u)
	}
	must(t, m.AddUsage(ctx, o, 1, saved, time.Time{}))
	sum := func(of store.Used, hour time.Time, which ...int) store.Used {
		of.Hour = hour
		for _, i := range which {
			of.Requests += saved[i].Requests
			of.Tokens.Add(saved[i].Tokens)
		}
		return of
	}
	none, next := store.Used{}, day.Add(24*time.Hour)
	for _, c := range []struct {
		name string
		q    store.UsageQuery
		want []store.Used
	}{
		{"by hour and everything", all, []store.Used{saved[1], saved[2], saved[0], saved[3]}},
		{"by day", store.UsageQuery{Until: all.Until, Width: 24 * time.Hour},
			[]store.Used{sum(none, day, 0, 1, 2), sum(none, next, 3)}},
		{"by day and tenant", store.UsageQuery{Until: all.Until, Width: 24 * time.Hour,
			ByTenant: true}, []store.Used{sum(store.Used{Tenant: "\x00a"}, day, 0),
			sum(store.Used{Tenant: "t"}, day, 1, 2), sum(store.Used{Tenant: "t"}, next, 3)}},
		{"by model of a tenant", store.UsageQuery{Until: all.Until, Width: 24 * time.Hour,
			ByModel: true, Tenants: []string{"t", "other"}},
			[]store.Used{sum(store.Used{Model: "m"}, day, 1, 2),
				sum(store.Used{Model: "n\xff"}, next, 3)}},
		{"by class of models", store.UsageQuery{Until: all.Until, Width: 24 * time.Hour,
			ByClass: true, Models: []string{"n\xff", "x"}},
			[]store.Used{sum(store.Used{Class: "flex"}, next, 3)}},
		{"from and until", store.UsageQuery{From: day.Add(time.Hour), Until: next,
			Width: 24 * time.Hour}, []store.Used{sum(none, day, 0, 2)}},
		{"of nobody", store.UsageQuery{Until: all.Until, Width: time.Hour,
			Tenants: []string{"\x00"}}, nil},
	} {
		wantEqual(t, c.name, got(m.Usage(ctx, c.q))(t), c.want)
	}
}

func oldUsageGoes(t *testing.T, m Store, _ *clock) {
	ctx := t.Context()
	o := got(m.Register(ctx, "a", time.Hour))(t)
	later := store.Used{Tenant: "t", Model: "m", Class: "flex", Hour: noon.Add(time.Hour),
		Requests: 1}
	must(t, m.AddUsage(ctx, o, 1, []store.Used{{Tenant: "t", Model: "gone", Class: "flex",
		Hour: noon, Requests: 1}, later}, noon))
	wantEqual(t, "hours", len(got(m.Usage(ctx, all))(t)), 2)
	must(t, m.AddUsage(ctx, o, 2, nil, noon.Add(time.Hour)))
	wantEqual(t, "hours that are left", got(m.Usage(ctx, all))(t), []store.Used{later})
}
