package plan

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTimersFireInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ts timers
		if !ts.next().IsZero() {
			t.Fatalf("without timers, next is %v", ts.next())
		}
		after := rapid.SliceOfN(rapid.IntRange(0, 20), 1, 50).Draw(t, "after")
		for i, s := range after {
			ts.set(timer{at: noon.Add(time.Duration(s) * time.Second), line: line{slot: int32(i)}})
		}
		now := noon.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "now")) * time.Second)
		var last timer
		fired := 0
		for {
			x, ok := ts.due(now)
			if !ok {
				break
			}
			switch {
			case x.at.After(now):
				t.Fatalf("fired %v too early", x.at.Sub(now))
			case x.at.Before(last.at):
				t.Fatalf("fired %v after %v", x.at, last.at)
			case x.at.Equal(last.at) && x.line.slot < last.line.slot:
				t.Fatalf("of two at the same time, the later set fired first")
			}
			last = x
			fired++
		}
		want := 0
		for _, s := range after {
			if !noon.Add(time.Duration(s) * time.Second).After(now) {
				want++
			}
		}
		if fired != want || (want == len(after)) != ts.next().IsZero() || !ts.next().IsZero() &&
			!ts.next().After(now) {
			t.Fatalf("fired %d, want %d; next %v", fired, want, ts.next())
		}
	})
}
