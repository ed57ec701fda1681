package driver

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/registry"
)

var noon = time.Unix(1_800_000_000, 0)

func replica(id string, phase autoscale.Phase) autoscale.Replica {
	return autoscale.Replica{ID: id, Phase: phase, Since: noon}
}

// A replica that shall go drains while it has lines in flight, is gone for scaling when it has none
// or has taken too long, and is opened again if it is wanted before it has been removed.
func TestLeavingReplicas(t *testing.T) {
	l := newLeaving(10 * time.Minute)
	var all []Replica
	for id, phase := range map[string]autoscale.Phase{"a": autoscale.Ready, "b": autoscale.Ready,
		"c": autoscale.Starting} {
		all = append(all, Replica{replica(id, phase), []string{id + ":80", id + ":81"}})
	}
	slices.SortFunc(all, func(a, b Replica) int { return cmp.Compare(a.ID, b.ID) })
	inFlight := map[string]int{"a:80": 1, "a:81": 2, "b:81": 2}
	lines := func(runners []string) int { return inFlight[runners[0]] + inFlight[runners[1]] }
	l.drain(noon, []string{"b"})
	l.drain(noon.Add(time.Minute), []string{"b", "a"}) // it is asked for again and again
	draining := func(id string, since time.Duration) autoscale.Replica {
		return autoscale.Replica{ID: id, Phase: autoscale.Draining, Since: noon.Add(since)}
	}
	check := func(after time.Duration, want ...autoscale.Replica) {
		t.Helper()
		got := l.apply(noon.Add(after), all, lines)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("after %v: -want +got\n%s", after, diff)
		}
	}
	check(time.Minute, draining("a", time.Minute), draining("b", 0), all[2].Replica)
	inFlight["a:80"], inFlight["a:81"] = 0, 0
	check(2*time.Minute, draining("b", 0), all[2].Replica)
	check(10*time.Minute, all[2].Replica)
	l.reopen(1) // the one that was closed last
	check(10*time.Minute, all[0].Replica, all[2].Replica)
	if diff := gocmp.Diff([]string{"b"}, l.ids()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	all = all[:1] // b has been removed
	check(11*time.Minute, all[0].Replica)
	if len(l.ids()) > 0 {
		t.Errorf("%v is still to go", l.ids())
	}
}

// removed notes which replicas are to be removed first.
type removed struct {
	ordered
	ids []string
}

func (r *removed) Remove(_ context.Context, _ string, ids []string) error {
	r.ids = ids
	return nil
}

// Of the replicas that shall go, those whose lines are answered are removed before the others.
func TestReplicasWithoutLinesAreRemovedFirst(t *testing.T) {
	replicas := &removed{}
	d, err := New(autoscale.DefaultConfig(), Deps{Logger: slog.New(slog.DiscardHandler),
		Replicas: replicas})
	if err != nil {
		t.Fatal(err)
	}
	g := &gathered{removable: map[string]bool{"night": true},
		runners: map[string]map[string][]string{"night": {"a": {"a:80"}, "b": {"b:80"},
			"c": {"c:80"}}},
		survey: plan.Survey{Runners: []plan.RunnerSurvey{{ID: "a:80"}, {ID: "b:80", InFlight: 3},
			{ID: "c:80", InFlight: 1}}}}
	d.leavingOf("night").drain(noon, []string{"a", "b", "c"})
	d.remove(t.Context(), g)
	if diff := gocmp.Diff([]string{"b", "c", "a"}, replicas.ids); diff != "" {
		t.Errorf("the last one goes first (-want +got)\n%s", diff)
	}
}

// ordered stands for pods of a StatefulSet, of which the last one by name ends first.
type ordered struct{ all []Replica }

func (ordered) Knows(string) bool                              { return true }
func (o ordered) Replicas(string) ([]Replica, error)           { return o.all, nil }
func (ordered) Remove(context.Context, string, []string) error { return nil }
func (ordered) Order(string) func(a, b string) int {
	return func(a, b string) int { return cmp.Compare(b, a) }
}

// Where replicas end in an order of their own, those are closed that end first, whatever progress
// they have; those that end last are opened first.
func TestReplicasThatEndFirstAreClosed(t *testing.T) {
	d, err := New(autoscale.DefaultConfig(), Deps{Logger: slog.New(slog.DiscardHandler),
		Replicas: ordered{}})
	if err != nil {
		t.Fatal(err)
	}
	p := autoscale.PoolState{Pool: registry.Pool{Name: "night"}}
	for _, id := range []string{"p-0", "p-1", "p-2", "p-3"} {
		p.Replicas = append(p.Replicas, replica(id, autoscale.Ready))
	}
	g := &gathered{at: noon, removable: map[string]bool{"night": true}}
	w := autoscale.Wanted{Pool: "night", Replicas: 2, Drain: []string{"p-0", "p-1"}}
	d.apply(g, &w, &p)
	if diff := gocmp.Diff([]string{"p-3", "p-2"}, w.Drain); diff != "" {
		t.Errorf("published as draining (-want +got)\n%s", diff)
	}
	l := d.leavingOf("night")
	if diff := gocmp.Diff([]string{"p-2", "p-3"}, l.ids()); diff != "" {
		t.Errorf("closed (-want +got)\n%s", diff)
	}
	p.Replicas = p.Replicas[:2] // those that are closed have no lines
	d.apply(g, &autoscale.Wanted{Pool: "night", Replicas: 3}, &p)
	if diff := gocmp.Diff([]string{"p-3"}, l.ids()); diff != "" {
		t.Errorf("closed after one was opened (-want +got)\n%s", diff)
	}
}

// A replica with lines in flight is reported from the decision on that drains it, so that none of
// those who ask finds the smaller number first.
func TestReportedWithThoseThatDrainFromNowOn(t *testing.T) {
	g := &gathered{removable: map[string]bool{"night": true},
		state: autoscale.State{Pools: make([]autoscale.PoolState, 2)},
		runners: map[string]map[string][]string{"night": {"a": {"a:80", "a:81"}, "b": {"b:80"}},
			"fixed": {"c": {"c:80"}}},
		survey: plan.Survey{Runners: []plan.RunnerSurvey{{ID: "a:81", InFlight: 3}, {ID: "b:80"},
			{ID: "c:80", InFlight: 1}}}}
	s := g.snapshot(autoscale.Decision{Pools: []autoscale.Wanted{
		{Pool: "night", Replicas: 1, Reported: 2, Drain: []string{"a", "b"}},
		{Pool: "fixed", Replicas: 1, Reported: 1, Drain: []string{"c"}}, // can't be chosen
	}})
	if night, fixed := s.Pool("night").Reported, s.Pool("fixed").Reported; night != 3 ||
		fixed != 1 {
		t.Errorf("%d and %d are reported, want 3 and 1", night, fixed)
	}
}
