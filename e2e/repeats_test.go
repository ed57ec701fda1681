package e2e

import (
	"slices"
	"testing"
	"time"
)

// A line whose answer was sent within these times before a kill may be sent again. Stalls of the
// disk do not count. A group commit collects for 20 ms, so nearly all answers are durable within
// commitWindow; on a busy machine a few take up to busyWindow.
const (
	commitWindow = 60 * time.Millisecond
	busyWindow   = 500 * time.Millisecond
	// arrivalWindow is how long after a kill the stub may still receive a request of the killed
	// process.
	arrivalWindow = 50 * time.Millisecond
)

// kill is the time when a process was killed: between begin and end.
type kill struct{ begin, end time.Time }

// explains reports whether the kill is the reason for another attempt of a line: the attempt before
// was in flight at the kill, or its answer was newer than the last group commit.
func (k kill) explains(before, again Attempt, disk *Disk) bool {
	return before.Begin.Before(k.end.Add(arrivalWindow)) && again.Begin.After(k.begin) &&
		(before.End.IsZero() || k.age(before, disk) < busyWindow)
}

// age returns the age of an answer at the kill, without stalls of the disk.
func (k kill) age(s Attempt, disk *Disk) time.Duration {
	return k.begin.Sub(s.End) - disk.Stalled(s.End, k.begin)
}

// checkRepeats fails the test for every repeated attempt that no kill explains. It returns the
// number of repeated attempts.
func checkRepeats(t *testing.T, all AttemptList, killed []kill, disk *Disk) (repeats int) {
	t.Helper()
	late := 0
	var oldest time.Duration
	after := make(map[int]int, len(killed)) // repetitions by kill
	for line, attempts := range all.byLine() {
		for i := 1; i < len(attempts); i++ {
			before, again := attempts[i-1], attempts[i]
			k := slices.IndexFunc(killed, func(k kill) bool {
				return k.explains(before, again, disk)
			})
			if k < 0 {
				t.Errorf("line %s was sent again at %v without a reason: the attempt before was "+
					"received at %v and answered at %v; last kill before %v; the disk stalled "+
					"for %v since the answer", line, clock(again.Begin), clock(before.Begin),
					clock(before.End), lastBefore(killed, again.Begin),
					disk.Stalled(before.End, again.Begin))
				continue
			}
			repeats++
			after[k]++
			if age := killed[k].age(before, disk); !before.End.IsZero() {
				oldest = max(oldest, age)
				if age > commitWindow {
					late++
				}
			}
		}
	}
	// Beside other tests a commit waits for a processor, which the disk does not show: there, times
	// are only logged.
	if late > inShort(repeats, 2+repeats/50) {
		t.Errorf(
			"%d of %d lines that were sent again had been answered more than %v before the kill",
			late, repeats, commitWindow)
	}
	most := 0
	for _, n := range after {
		most = max(most, n)
	}
	t.Logf("%d lines were sent again, at most %d after a kill; %d had been answered more than %v "+
		"before it, the oldest %v", repeats, most, late, commitWindow, oldest)
	return repeats
}

func clock(t time.Time) string { return t.Format("15:04:05.000000") }

// lastBefore formats the last kill before a time.
func lastBefore(killed []kill, t time.Time) string {
	last := "none"
	for _, k := range killed {
		if k.begin.Before(t) {
			last = clock(k.begin) + " to " + clock(k.end)
		}
	}
	return last
}
