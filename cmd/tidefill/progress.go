package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

const (
	// progressInterval is the time between two rows while the state of a batch stays the same.
	progressInterval = 5 * time.Second
	// liveInterval is the time between two changes of a live row.
	liveInterval = 500 * time.Millisecond
	// barWidth is the width of the bar of a live row, in columns.
	barWidth = 10
)

// batchProgress reports the progress of a batch: on a terminal on one live row with a bar,
// elsewhere by a row every few seconds, and at once when its state or its verdict changes.
type batchProgress struct {
	out    io.Writer
	now    func() time.Time
	screen screen
	pace   pace

	shown   string
	status  string
	verdict string
	next    time.Time // when the next report is due
	live    bool      // the cursor is on the live row
}

func newBatchProgress(out io.Writer) *batchProgress {
	return &batchProgress{out: out, now: time.Now, screen: screenOf(out)}
}

func (p *batchProgress) show(b client.Batch) {
	now := p.now()
	p.pace.add(now, &b)
	figures := progressText(b, now)
	status := statusText(b)
	interval := progressInterval
	if p.screen.terminal {
		interval = liveInterval
	}
	if status == p.status && b.Tidefill.Verdict == p.verdict && !b.Ended() &&
		(now.Before(p.next) || figures == p.shown) {
		return
	}
	p.shown, p.status, p.next = figures, status, now.Add(interval)
	p.verdict = b.Tidefill.Verdict
	if p.screen.terminal {
		p.row(b, status, figures)
		return
	}
	printf(p.out, "%s  %s  %s\n", b.ID, status, figures)
}

// row writes the live row over the one before. It is cut where the terminal ends, since a row that
// wraps can't be written over.
func (p *batchProgress) row(b client.Batch, status, figures string) {
	filled := 0
	if c := b.Ran(); c.Total > 0 {
		filled = barWidth * c.Done() / c.Total
	}
	bar := strings.Repeat("█", filled) + strings.Repeat("░", barWidth-filled)
	row := fmt.Sprintf("%s  %s  ", shortID(b.ID), bar)
	if status != "in_progress" { // which the bar says
		row += status + "  "
	}
	row = humanize.Printable(row + figures)
	if width := p.screen.columns - 1; width > 0 && utf8.RuneCountInString(row) > width {
		row = string([]rune(row)[:width-1]) + "…"
	}
	c := verdictColor(b)
	if b.Ended() {
		c = statusColor(b)
	}
	if b.Ran().Failed > 0 && c != red {
		c = yellow
	}
	printf(p.out, "%s", p.screen.paint(c, row).over())
	p.live = true
	if b.Ended() {
		p.end()
	}
}

// end leaves the live row, if there is one.
func (p *batchProgress) end() {
	if p.live {
		fmt.Fprintln(p.out)
		p.live = false
	}
}

// progressText returns the figures of a batch: 120/300 (40%), 31.5 lines/s, ETA 6s, 1 failed, 2
// retrying.
func progressText(b client.Batch, now time.Time) string {
	c, x := b.Ran(), b.Tidefill
	parts := []string{fmt.Sprintf("%d/%d (%s)", c.Done(), c.Total, percent(c))}
	if !b.Ended() {
		if x.Rate > 0 && !x.Paused {
			parts = append(parts, fmt.Sprintf("%.1f lines/s", x.Rate))
		}
		if left := time.Unix(x.ETA, 0).Sub(now); x.ETA > 0 && left > 0 {
			parts = append(parts, "ETA "+humanize.Duration(left))
		}
	}
	if c.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", c.Failed))
	}
	if x.NotRun > 0 {
		parts = append(parts, fmt.Sprintf("%d not run", x.NotRun))
	}
	if !b.Ended() {
		if text := deadlineText(x.Verdict); x.Verdict != "" && x.Verdict != "ok" {
			parts = append(parts, text)
		}
		if x.Retrying > 0 {
			parts = append(parts, fmt.Sprintf("%d retrying", x.Retrying))
		}
		if x.Waiting != "" {
			reason, _, _ := strings.Cut(x.Waiting, ". ") // what to do is in `batch get`
			parts = append(parts, "waiting: "+reason)
		}
	} else if start, end := b.InProgressAt, b.EndedAt(); start > 0 && end > start {
		parts = append(parts, "in "+humanize.Duration(time.Duration(end-start)*time.Second))
	}
	return strings.Join(parts, ", ")
}

const (
	// paceWindow is the time over which a rate is a mean: the daemon's own rate is of some seconds,
	// and an end that is expected by it jumps.
	paceWindow = time.Minute
	// minPaceWindow is the time before which the daemon's own rate is better.
	minPaceWindow = 10 * time.Second
)

// pace measures the rate of a batch by its counts.
type pace struct{ samples []paceSample }

type paceSample struct {
	at   time.Time
	done int
}

// add takes the counts of a batch, and replaces its rate and its expected end by steadier ones, if
// they are known.
func (p *pace) add(now time.Time, b *client.Batch) {
	done := b.Counts.Done()
	if n := len(p.samples); n > 0 && p.samples[n-1].done > done {
		p.samples = nil // another count than before: the daemon has started again
	}
	if n := len(p.samples); n == 0 || now.Sub(p.samples[n-1].at) >= time.Second {
		p.samples = append(p.samples, paceSample{now, done})
	}
	first := 0
	for first+1 < len(p.samples) && now.Sub(p.samples[first+1].at) >= paceWindow {
		first++
	}
	p.samples = slices.Delete(p.samples, 0, first)
	span := now.Sub(p.samples[0].at)
	if b.Tidefill.Paused || b.Status != "in_progress" || span < minPaceWindow {
		return
	}
	rate := float64(done-p.samples[0].done) / span.Seconds()
	if b.Tidefill.Rate = rate; rate > 0 {
		left := time.Duration(float64(b.Counts.Total-done) / rate * float64(time.Second))
		b.Tidefill.ETA = now.Add(left).Unix()
	}
}
