package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tidefill/tidefill/store"
)

var states = []store.State{
	store.Validating, store.InProgress, store.Finalizing, store.Completed,
	store.Failed, store.Expired, store.Cancelling, store.Cancelled,
}

// population creates batches of t1 that differ in everything that can be asked for, with many ties,
// and as many of t2. They are returned in order of their creation.
func population(t *testing.T, m Store, n int) []store.Batch {
	random := rand.New(rand.NewPCG(1, 2))
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	all := make([]store.Batch, 0, n)
	for i := range n {
		// ids do not show the order
		b := newBatch(fmt.Sprintf("b%03d", random.IntN(1000)*1000+i), "t1")
		b.State = states[random.IntN(len(states))]
		b.CreatedAt = start.Add(time.Duration(i/4) * time.Minute)
		if random.IntN(3) > 0 {
			b.Deadline = start.Add(time.Duration(random.IntN(n/4)) * time.Minute)
		}
		for _, model := range []string{"small", "large", "rare"} {
			if random.IntN(3) == 0 {
				b.Models = append(b.Models, store.ModelLines{Model: model, Lines: 1})
			}
		}
		b.Metadata = map[string]string{}
		for _, key := range []string{"run", "team"} {
			if random.IntN(2) == 0 {
				b.Metadata[key] = fmt.Sprint(random.IntN(3))
			}
		}
		must(t, m.CreateBatch(t.Context(), b))
		other := b
		other.ID, other.Tenant = "other-"+b.ID, "t2"
		must(t, m.CreateBatch(t.Context(), other))
		b.Version = 1
		all = append(all, b)
	}
	return all
}

func batchesAreListed(t *testing.T, m Store, _ *clock) {
	all := population(t, m, 120)
	// Some change what they are found by.
	for i := 0; i < len(all); i += 7 {
		if all[i].State.Terminal() {
			continue
		}
		b := &all[i]
		b.State = states[(i/7)%len(states)]
		b.Deadline = b.Deadline.Add(time.Duration(i%3) * time.Minute)
		if i%2 == 0 {
			b.Metadata = map[string]string{"run": "new"}
		}
		*b = got(m.UpdateBatch(t.Context(), *b))(t)
	}
	rapid.Check(t, func(rt *rapid.T) {
		q := drawQuery(rt, all[0].CreatedAt)
		want := obviousList(all, q)
		var listed []string
		for page := q; ; {
			p, err := m.ListBatchIDs(t.Context(), "t1", page)
			if err != nil {
				rt.Fatalf("list %+v: %v", page, err)
			}
			listed = append(listed, p.Items...)
			if !p.More {
				break
			}
			if len(p.Items) != q.Limit || len(listed) > len(all) {
				rt.Fatalf("list %+v: %d items on a page before the last, %d so far", page, len(
					p.Items), len(listed))
			}
			page.After = listed[len(listed)-1]
		}
		if !slices.Equal(listed, batchIDs(want)) {
			rt.Fatalf("list %+v:\ngot  %v\nwant %v", q, listed, batchIDs(want))
		}
		if len(listed) > 0 {
			wantEqual(t, "listed batch", got(m.Batch(t.Context(), "t1", listed[0]))(t), want[0])
		}
	})
}

// An operator finds batches of all tenants, the newest first.
func batchesAreFound(t *testing.T, m Store, _ *clock) {
	all := population(t, m, 60)
	slices.Reverse(all)
	rapid.Check(t, func(rt *rapid.T) {
		q := store.BatchSearch{
			Limit:  rapid.SampledFrom([]int{0, 1, 7, 100}).Draw(rt, "limit"),
			Tenant: rapid.SampledFrom([]string{"", "t1", "t2", "none"}).Draw(rt, "tenant"),
			Prefix: rapid.SampledFrom([]string{"", "b", "b1", "other-b2", "é", "%", all[5].ID}).
				Draw(rt, "prefix"),
		}
		if rapid.Bool().Draw(rt, "filter by state") {
			q.States = rapid.SliceOfN(rapid.SampledFrom(states), 1, 4).Draw(rt, "states")
		}
		var want, found []string
		for _, b := range all {
			for tenant, id := range map[string]string{"t1": b.ID, "t2": "other-" + b.ID} {
				if (q.Tenant == "" || q.Tenant == tenant) && strings.HasPrefix(id, q.Prefix) &&
					(q.States == nil || slices.Contains(q.States, b.State)) {
					want = append(want, id)
				}
			}
		}
		for {
			p, err := m.SearchBatchIDs(t.Context(), q)
			if err != nil {
				rt.Fatalf("search %+v: %v", q, err)
			}
			if found = append(found, p.Items...); !p.More {
				break
			}
			if len(p.Items) != q.Limit {
				rt.Fatalf("search %+v: %d items on a page before the last", q, len(p.Items))
			}
			q.Before = found[len(found)-1]
		}
		number := func(id string) int {
			return slices.IndexFunc(all, func(b store.Batch) bool {
				return b.ID == strings.TrimPrefix(id, "other-")
			})
		}
		if !slices.IsSortedFunc(found, func(a, b string) int { return number(a) - number(b) }) {
			rt.Fatalf("search %+v: %v is not in order", q, found)
		}
		slices.Sort(want)
		if slices.Sort(found); !slices.Equal(found, want) {
			rt.Fatalf("search %+v:\ngot  %v\nwant %v", q, found, want)
		}
	})
	if _, err := m.SearchBatchIDs(t.Context(), store.BatchSearch{Before: "gone"}); !errors.Is(err,
		store.ErrBadCursor) {
		t.Errorf("an unknown start: %v", err)
	}
}

func drawQuery(rt *rapid.T, start time.Time) store.BatchQuery {
	instant := rapid.Map(rapid.IntRange(-1, 31), func(minute int) time.Time {
		if minute < 0 {
			return time.Time{}
		}
		return start.Add(time.Duration(minute) * time.Minute)
	})
	q := store.BatchQuery{
		Limit: rapid.SampledFrom([]int{0, 1, 3, 10, 100}).Draw(rt, "limit"),
		Order: rapid.SampledFrom([]store.BatchOrder{"", store.ByCreation,
			store.ByDeadline}).Draw(rt, "order"),
		Ascending: rapid.Bool().Draw(rt, "ascending"),
	}
	if rapid.Bool().Draw(rt, "filter by state") {
		q.States = rapid.SliceOfN(rapid.SampledFrom(states), 1, 4).Draw(rt, "states")
	}
	if rapid.Bool().Draw(rt, "filter by model") {
		q.Model = rapid.SampledFrom([]string{"small", "large", "rare", "unknown"}).Draw(rt, "model")
	}
	if rapid.Bool().Draw(rt, "filter by metadata") {
		q.MetadataKey = rapid.SampledFrom([]string{"run", "team", "unknown"}).Draw(rt, "key")
		q.MetadataValue = rapid.SampledFrom([]string{"", "0", "1", "new"}).Draw(rt, "value")
	}
	if rapid.Bool().Draw(rt, "filter by creation") {
		q.CreatedAfter, q.CreatedBefore = instant.Draw(rt, "created after"),
			instant.Draw(rt, "created before")
	}
	if rapid.Bool().Draw(rt, "filter by deadline") {
		q.DeadlineAfter, q.DeadlineBefore = instant.Draw(rt, "deadline after"),
			instant.Draw(rt, "deadline before")
	}
	return q
}

// obviousList returns the complete listing, from all batches in order of their creation.
func obviousList(all []store.Batch, q store.BatchQuery) (list []store.Batch) {
	list = slices.Clone(all)
	if !q.Ascending {
		slices.Reverse(list)
	}
	slices.SortStableFunc(list, func(a, b store.Batch) int {
		at, bt := a.CreatedAt, b.CreatedAt
		if q.Order == store.ByDeadline {
			at, bt = a.Deadline, b.Deadline
			if at.IsZero() != bt.IsZero() {
				return boolInt(at.IsZero()) - boolInt(bt.IsZero())
			}
		}
		if q.Ascending {
			return at.Compare(bt)
		}
		return bt.Compare(at)
	})
	return slices.DeleteFunc(list, func(b store.Batch) bool { return !matches(b, q) })
}

func matches(b store.Batch, q store.BatchQuery) bool {
	if len(q.States) > 0 && !slices.Contains(q.States, b.State) {
		return false
	}
	if q.Model != "" && !slices.ContainsFunc(b.Models, func(m store.ModelLines) bool {
		return m.Model == q.Model
	}) {
		return false
	}
	if q.MetadataKey != "" {
		value, ok := b.Metadata[q.MetadataKey]
		if !ok || q.MetadataValue != "" && value != q.MetadataValue {
			return false
		}
	}
	if bounded := !q.DeadlineAfter.IsZero() || !q.DeadlineBefore.IsZero(); bounded &&
		b.Deadline.IsZero() {
		return false
	}
	return within(b.CreatedAt, q.CreatedAfter, q.CreatedBefore) && within(b.Deadline,
		q.DeadlineAfter, q.DeadlineBefore)
}

func within(at, after, before time.Time) bool {
	return (after.IsZero() || at.After(after)) && (before.IsZero() || at.Before(before))
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func batchIDs(batches []store.Batch) []string {
	ids := make([]string, len(batches))
	for i, b := range batches {
		ids[i] = b.ID
	}
	return ids
}

func batchCursorsStayValid(t *testing.T, m Store, _ *clock) {
	ctx := t.Context()
	all := population(t, m, 20)
	q := store.BatchQuery{Limit: 5}
	page := got(m.ListBatchIDs(ctx, "t1", q))(t)
	q.After = page.Items[4]
	want := got(m.ListBatchIDs(ctx, "t1", q))(t).Items

	// Neither newcomers nor changes of the cursor's batch shift the next page.
	late := newBatch("late", "t1")
	late.CreatedAt = all[len(all)-1].CreatedAt
	must(t, m.CreateBatch(ctx, late))
	if b := got(m.Batch(ctx, "t1", q.After))(t); !b.State.Terminal() {
		b.State = store.Cancelled
		got(m.UpdateBatch(ctx, b))(t)
	}
	wantEqual(t, "next page", got(m.ListBatchIDs(ctx, "t1", q))(t).Items, want)

	for _, cursor := range []string{"nowhere", "other-" + all[0].ID} {
		_, err := m.ListBatchIDs(ctx, "t1", store.BatchQuery{After: cursor, Limit: 1})
		wantErr(t, "list after "+cursor, err, store.ErrBadCursor)
	}
}
