package e2e

import (
	"slices"
	"testing"
	"time"
)

// How long before a kill an answer may have been given and still be asked for again, not counting
// the time that the medium took nothing. A group commit collects for at most 50 ms, so most answers
// are safe within commitWindow; a busy machine may take a few up to busyWindow.
const (
	commitWindow = 60 * time.Millisecond
	busyWindow   = 500 * time.Millisecond
	// A request that was on its way may be taken up by the stub this long after the one who sent it
	// was killed.
	arrivalWindow = 50 * time.Millisecond
)

// moment is when a process was killed: not before begin, not after end.
type moment struct{ begin, end time.Time }

// explains says whether a kill at k is the reason that a line was sent again: its sending before
// was under way then, or its answer younger than the last group commit.
func (k moment) explains(before, again Sending, medium *Medium) bool {
	return before.Begin.Before(k.end.Add(arrivalWindow)) && again.Begin.After(k.begin) &&
		(before.End.IsZero() || k.age(before, medium) < busyWindow)
}

// age is how old an answer was at the kill, not counting the time that the medium took nothing.
func (k moment) age(s Sending, medium *Medium) time.Duration {
	return k.begin.Sub(s.End) - medium.Stalled(s.End, k.begin)
}

// checkRepeats fails the test for every request that no kill explains. batches says in how many
// batches a body stands, by digest: in so many it may be sent without a kill. It returns how many
// lines were sent again.
func checkRepeats(
	t *testing.T, ledger map[string][]Sending, killed []moment, medium *Medium,
	batches map[string]int,
) (repeats int) {
	t.Helper()
	late := 0
	var oldest time.Duration
	after := make(map[int]int, len(killed)) // kill: repeats because of it
	for digest, sendings := range ledger {
		unexplained := 0
		for i := 1; i < len(sendings); i++ {
			before, again := sendings[i-1], sendings[i]
			k := slices.IndexFunc(killed, func(k moment) bool {
				return k.explains(before, again, medium)
			})
			if k < 0 {
				if unexplained++; unexplained >= batches[digest] {
					t.Errorf(
						"line %.8s was sent again at %v without need: before it came at %v and was answered at %v; last kill by then %v; "+
							"the medium stalled for %v since the answer", digest, clock(
							again.Begin), clock(before.Begin), clock(before.End),
						lastBefore(killed, again.Begin), medium.Stalled(before.End, again.Begin))
				}
				continue
			}
			repeats++
			after[k]++
			if age := killed[k].age(before, medium); !before.End.IsZero() {
				oldest = max(oldest, age)
				if age > commitWindow {
					late++
				}
			}
		}
	}
	if late > 2+repeats/20 {
		t.Errorf(
			"%d of %d lines that were sent again had been answered more than %v before the kill",
			late, repeats, commitWindow)
	}
	most := 0
	for _, n := range after {
		most = max(most, n)
	}
	t.Logf(
		"%d lines were sent again, at most %d after a kill; the oldest of their answers came %v before it", repeats, most, oldest)
	return repeats
}

func clock(t time.Time) string { return t.Format("15:04:05.000000") }

// lastBefore is the last kill before a moment, in words.
func lastBefore(killed []moment, t time.Time) string {
	last := "none"
	for _, k := range killed {
		if k.begin.Before(t) {
			last = clock(k.begin) + " to " + clock(k.end)
		}
	}
	return last
}
