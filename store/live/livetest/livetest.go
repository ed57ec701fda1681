// Package livetest is the conformance suite of package live.
package livetest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/live"
)

// patience is the longest time until an event arrives. It is what users may wait for a
// cancellation.
const patience = 100 * time.Millisecond

// TestSnapshots checks two views of one empty medium, as two processes have them.
func TestSnapshots(t *testing.T, a, b live.Snapshots) {
	ctx := t.Context()
	read := func(kind string) string {
		t.Helper()
		all, err := b.Snapshots(ctx, kind)
		if err != nil {
			t.Fatalf("read snapshots: %v", err)
		}
		var texts []string
		for _, s := range all {
			texts = append(texts, s.Name+" of "+s.Node+": "+string(s.Data))
			if s.Age < 0 || s.Age > 5*time.Second {
				t.Errorf("the snapshot of %s has the age %v", s.Name, s.Age)
			}
		}
		return strings.Join(texts, "; ")
	}
	publish := func(view live.Snapshots, kind string, s live.Snapshot) {
		t.Helper()
		if err := view.Publish(ctx, kind, s); err != nil {
			t.Fatalf("publish %s: %v", s.Name, err)
		}
	}
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	check("nothing is published", read("pools"), "")
	publish(a, "pools", live.Snapshot{Name: "y", Node: "n1", Epoch: 1, Data: []byte("first")})
	publish(b, "pools", live.Snapshot{Name: "x", Node: "n2", Epoch: 7, Data: []byte("\x00\xff")})
	publish(a, "other", live.Snapshot{Name: "x", Node: "n1", Epoch: 1, Data: []byte("apart")})
	check("two are published", read("pools"), "x of n2: \x00\xff; y of n1: first")
	publish(a, "pools", live.Snapshot{Name: "y", Node: "n1", Epoch: 1, Data: []byte("second")})
	publish(b, "pools", live.Snapshot{Name: "y", Node: "n2", Epoch: 2, Data: []byte("third")})
	err := a.Publish(ctx, "pools", live.Snapshot{Name: "y", Node: "n1", Epoch: 1})
	if !errors.Is(err, store.ErrFenced) {
		t.Errorf("publish at an old epoch: %v, want %v", err, store.ErrFenced)
	}
	check("a newer leader has published", read("pools"), "x of n2: \x00\xff; y of n2: third")
	check("another kind", read("other"), "x of n1: apart")
	before, _ := b.Snapshots(ctx, "pools")
	time.Sleep(20 * time.Millisecond)
	after, _ := b.Snapshots(ctx, "pools")
	if grown := after[0].Age - before[0].Age; grown < 15*time.Millisecond {
		t.Errorf("within 20 ms the age has grown by %v", grown)
	}
}

// TestEvents checks two views of one medium, as two processes have them.
func TestEvents(t *testing.T, a, b live.Events) {
	type event struct {
		view  string
		topic live.Topic
		ids   string
	}
	came := make(chan event, 1000)
	stops := map[string]func(){}
	for name, view := range map[string]live.Events{"a": a, "b": b} {
		stops[name] = view.Subscribe(func(topic live.Topic, ids []string) {
			if len(ids) > 0 {
				came <- event{name, topic, strings.Join(slices.Sorted(slices.Values(ids)), " ")}
			}
		})
	}
	// Both are subscribed once an event of each reaches the other.
	for _, view := range []live.Events{a, b} {
		for got, tries := map[string]bool{}, 0; len(got) < 2; tries++ {
			if tries == 100 {
				t.Fatal("no event arrived within 10 s")
			}
			view.Emit(live.Leading, "ready")
			for timeout := time.After(patience); len(got) < 2 && timeout != nil; {
				select {
				case e := <-came:
					got[e.view] = true
				case <-timeout:
					timeout = nil
				}
			}
		}
	}
	time.Sleep(patience) // events that were emitted more than once have come
	for len(came) > 0 {
		<-came
	}
	began := time.Now()
	a.Emit(live.Batches, "batch_1", "batch_2")
	got := map[string]event{}
	for len(got) < 2 {
		select {
		case e := <-came:
			got[e.view] = e
		case <-time.After(2 * time.Second):
			t.Fatalf("an event did not reach every view: %v", got)
		}
	}
	if took := time.Since(began); took > patience {
		t.Errorf("the event took %v, want %v at most", took, patience)
	}
	for view, e := range got {
		if e.topic != live.Batches || e.ids != "batch_1 batch_2" {
			t.Errorf("view %s got %+v", view, e)
		}
	}
	stops["b"]()
	a.Emit(live.Batches, "batch_3")
	if e := <-came; e.view != "a" {
		t.Errorf("after view b has stopped, view %s got %v first", e.view, e)
	}
	select {
	case e := <-came:
		t.Errorf("after it has stopped, view %s got %v", e.view, e)
	case <-time.After(patience):
	}
	stops["a"]()
}

// TestWindows checks two views of one medium, as two processes have them.
func TestWindows(t *testing.T, a, b live.Windows) {
	ctx, limit := t.Context(), live.Limit{Most: 5, Per: 2 * time.Second}
	began := time.Now()
	admitted := 0
	for i := range 20 {
		view := a
		if i%2 == 1 {
			view = b
		}
		taken := view.Take(ctx, "tenant", limit)
		// The window empties meanwhile.
		if low := max(0, 4-i); taken.Left < low || taken.Left > 4 ||
			time.Since(began) < limit.Per/5 && taken.Left > low {
			t.Errorf("after %d requests %d are left", i+1, taken.Left)
		}
		if full := time.Duration(min(i+1, 5)) * limit.Per / 5; taken.Empty > limit.Per ||
			taken.Empty < full-time.Since(began)-time.Millisecond || taken.Empty > full+
			time.Millisecond && admitted < 5 {
			t.Errorf("after %d requests the window is empty after %v", i+1, taken.Empty)
		}
		if taken.Wait == 0 {
			admitted++
			continue
		}
		if taken.Wait < 0 || taken.Wait > limit.Per/5 {
			t.Errorf("a request over the limit shall wait for %v, want %v at most", taken.Wait,
				limit.Per/5)
		}
	}
	if most := 5 + int(time.Since(began)/(limit.Per/5)); admitted < 5 || admitted > most {
		t.Errorf("admitted %d requests at once, want 5 to %d", admitted, most)
	}
	if taken := a.Take(ctx, "other", limit); taken.Wait != 0 {
		t.Errorf("another tenant shall wait for %v", taken.Wait)
	}
	slow := live.Limit{Most: 2, Per: time.Hour}
	for i := range 4 {
		if taken := a.Take(ctx, "moved", slow); taken.Wait != 0 || taken.Left != 1 {
			t.Errorf("after %d requests that were taken back: got %+v", i, taken)
		}
		b.Give(ctx, "moved", slow)
	}
	b.Give(ctx, "nobody", slow)
	time.Sleep(limit.Per/5 + 50*time.Millisecond)
	if taken := b.Take(ctx, "tenant", limit); taken.Wait != 0 {
		t.Errorf("after a fifth of the time a request shall wait for %v", taken.Wait)
	}
}
