package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

func namesHaveOneLeader(t *testing.T, m Store, c *clock) {
	ctx := t.Context()
	a := got(m.Register(ctx, "a", time.Minute))(t)
	b := got(m.Register(ctx, "b", time.Hour))(t)
	lead := func(o store.Owner, names ...string) (int64, map[string]string) {
		t.Helper()
		epoch, others, err := m.Lead(ctx, o, names)
		must(t, err)
		return epoch, others
	}
	first, others := lead(a, "r1", "m1")
	wantEqual(t, "free names", len(others), 0)
	again, others := lead(a, "m1", "r1")
	wantEqual(t, "confirmed", len(others), 0)
	wantEqual(t, "epoch when confirmed", again, first)

	_, others = lead(b, "r2", "m1")
	wantEqual(t, "a set that another owner leads in part", others, map[string]string{"m1": "a"})
	_, others = lead(a, "r2")
	wantEqual(t, "b got none of them", len(others), 0)

	leaders := func(want map[string]string, names ...string) {
		t.Helper()
		wantEqual(t, "leaders", got(m.Leaders(ctx, names))(t), want)
	}
	leaders(map[string]string{"m1": "a"}, "m1", "m2")
	leaders(map[string]string{})

	must(t, m.Resign(ctx, b, []string{"m1"}))
	_, others = lead(b, "m1")
	wantEqual(t, "resigned for another", others, map[string]string{"m1": "a"})
	must(t, m.Resign(ctx, a, []string{"m1"}))
	second, others := lead(b, "m1")
	wantEqual(t, "after a resigned", len(others), 0)
	if second <= first {
		t.Errorf("got epoch %d after %d, want a higher one", second, first)
	}

	last := func(want store.LastLead, name string) {
		t.Helper()
		wantEqual(t, "the last leadership", got(m.LastLeads(ctx, []string{name, "never"}))(t),
			map[string]store.LastLead{name: want})
	}
	last(store.LastLead{Node: "a", State: store.LeadLasts}, "r1")
	c.advance(time.Minute)
	last(store.LastLead{Node: "a", State: store.LeadExpired}, "r1")
	leaders(map[string]string{"m1": "b"}, "r1", "m1")
	_, _, err := m.Lead(ctx, a, []string{"r1"})
	wantErr(t, "lead with a lease that has ended", err, store.ErrFenced)
	_, others = lead(b, "r1", "r2", "m1")
	wantEqual(t, "after the lease of a", len(others), 0)
	if err := m.Renew(ctx, a, time.Minute); err == nil {
		_, others = lead(a, "r1")
		wantEqual(t, "a back again", others, map[string]string{"r1": "b"})
	}
	newer := got(m.Register(ctx, "b", time.Minute))(t)
	_, _, err = m.Lead(ctx, b, []string{"r1"})
	wantErr(t, "lead when superseded", err, store.ErrFenced)
	_, others = lead(newer, "r1", "m1")
	wantEqual(t, "names of the earlier incarnation", len(others), 0)
	must(t, m.Unregister(ctx, newer))
	last(store.LastLead{Node: "b", State: store.LeadStopped}, "r1")
	third := got(m.Register(ctx, "c", time.Minute))(t)
	_, others = lead(third, "r1", "r2", "m1")
	wantEqual(t, "after b unregistered", len(others), 0)
	_, others = lead(third)
	wantEqual(t, "no names", len(others), 0)
}

// concurrentLeaders lets owners request overlapping sets of names concurrently. Afterwards each
// name has one leader, and each owner leads all names of its set or none.
func concurrentLeaders(t *testing.T, m Store, _ *clock) {
	ctx := t.Context()
	sets := [][]string{{"x", "y"}, {"y", "z"}, {"z", "x"}, {"x", "y", "z"}}
	for round := range 5 {
		won := make([]bool, len(sets))
		owners := make([]store.Owner, len(sets))
		var running sync.WaitGroup
		for i, names := range sets {
			running.Go(func() {
				o, err := m.Register(ctx, fmt.Sprint("n", i), time.Minute)
				if err != nil {
					t.Errorf("register: %v", err)
					return
				}
				_, others, err := m.Lead(ctx, o, names)
				if err != nil {
					t.Errorf("lead: %v", err)
				}
				owners[i], won[i] = o, len(others) == 0
			})
		}
		running.Wait()
		var led []string
		for i := range sets {
			if won[i] {
				led = append(led, sets[i]...)
			}
		}
		slices.Sort(led)
		if len(led) == 0 || len(slices.Compact(slices.Clone(led))) != len(led) {
			t.Errorf("round %d: led are %v, want at least one set and no name twice", round, led)
		}
		for _, o := range owners {
			must(t, m.Unregister(ctx, o))
		}
	}
}
