package demo

import (
	"fmt"
	"io"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/runner/emulator"
)

// users compares what interactive users feel while the batch runs with what the same users feel at
// the same time on equal runners without batch work.
type users struct {
	promise       flowcontrol.SLO
	with, without felt

	begun  bool      // lines of the batch have run
	next   time.Time // when the next report is due
	totals [2]tally  // since then, with and without batch work
}

// reportInterval is the time between two reports of what users feel.
const reportInterval = 5 * time.Second

// felt collects what users felt since it was last taken.
type felt struct {
	mu       sync.Mutex
	requests []emulator.Served
}

func (f *felt) add(s emulator.Served) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, s)
}

func (f *felt) take() []emulator.Served {
	f.mu.Lock()
	defer f.mu.Unlock()
	taken := f.requests
	f.requests = nil
	return taken
}

// tally sums up what users felt.
type tally struct {
	requests, streams int // streams: those of more than one token
	late              int
	first, token      time.Duration // sums
}

func (t *tally) add(requests []emulator.Served, promise flowcontrol.SLO) {
	for _, r := range requests {
		t.requests++
		t.first += r.FirstToken
		if r.PerToken > 0 {
			t.streams++
			t.token += r.PerToken
		}
		if promise.TTFT > 0 && r.FirstToken > promise.TTFT ||
			promise.TPOT > 0 && r.PerToken > promise.TPOT {
			t.late++
		}
	}
}

func (t *tally) meanFirst() time.Duration { return t.first / time.Duration(max(1, t.requests)) }
func (t *tally) meanToken() time.Duration { return t.token / time.Duration(max(1, t.streams)) }
func (t *tally) lateShare() float64       { return float64(t.late) / float64(max(1, t.requests)) }

// report prints what users felt since the last report, if that is some seconds ago.
func (u *users) report(out io.Writer, now time.Time) {
	if now.Before(u.next) {
		return
	}
	with, without := u.take()
	u.next = now.Add(reportInterval)
	if !u.begun { // what they felt before
		u.begun, u.totals = true, [2]tally{}
		return
	}
	fmt.Fprintf(out, "  interactive users: a token each %s, %s without batch work (%s); "+
		"first token %s, %s (%s)\n",
		milliseconds(with.meanToken()), milliseconds(without.meanToken()),
		change(with.meanToken(), without.meanToken()), milliseconds(with.meanFirst()),
		milliseconds(without.meanFirst()), change(with.meanFirst(), without.meanFirst()))
}

// take adds what users felt since the last call to the totals and returns it.
func (u *users) take() (with, without tally) {
	for i, part := range []struct {
		tally *tally
		felt  *felt
	}{{&with, &u.with}, {&without, &u.without}} {
		requests := part.felt.take()
		part.tally.add(requests, u.promise)
		u.totals[i].add(requests, u.promise)
	}
	return with, without
}

// printTable prints what users felt while the batch ran.
func (u *users) printTable(out io.Writer) {
	u.take()
	with, without := &u.totals[0], &u.totals[1]
	if with.requests == 0 || without.requests == 0 {
		fmt.Fprint(out, "It was too short to show what interactive users felt of it.\n\n")
		return
	}
	fmt.Fprintf(out, "What %s felt meanwhile, and what they feel at the same time on equal "+
		"runners without batch work:\n\n", humanize.Count(with.requests, "interactive request"))
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "\twith batch work\twithout\tdifference\t\n")
	row := func(name string, a, b time.Duration) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t\n", name, milliseconds(a), milliseconds(b),
			change(a, b))
	}
	row("time per token", with.meanToken(), without.meanToken())
	row("first token", with.meanFirst(), without.meanFirst())
	fmt.Fprintf(table, "later than promised\t%.1f %%\t%.1f %%\t%+.1f points\t\n",
		100*with.lateShare(), 100*without.lateShare(),
		100*(with.lateShare()-without.lateShare()))
	table.Flush()
	fmt.Fprintln(out)
}

// milliseconds returns a time with about three digits.
func milliseconds(d time.Duration) string {
	ms := d.Seconds() * 1000
	if ms < 100 {
		return fmt.Sprintf("%.1f ms", ms)
	}
	return fmt.Sprintf("%.0f ms", ms)
}

// change returns the percentage by which a exceeds b, as text.
func change(a, b time.Duration) string {
	return fmt.Sprintf("%+.0f %%", 100*(a.Seconds()/max(b.Seconds(), 1e-9)-1))
}
