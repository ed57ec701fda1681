package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/tidefill/tidefill/client"
)

// meter shows how a batch moves on: a bar that is drawn over itself on a terminal, lines now and
// then elsewhere.
type meter struct {
	out   io.Writer
	width func() int // of the terminal, in columns; nil: there is none
	now   func() time.Time

	shown  string
	status string
	next   time.Time // when a line is due again
}

// meterEvery is the time between two lines where there is no terminal.
const meterEvery = 5 * time.Second

func newMeter(out io.Writer) *meter {
	m := &meter{out: out, now: time.Now}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		m.width = func() int {
			if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
				return width
			}
			return 80
		}
	}
	return m
}

func (m *meter) show(b client.Batch) {
	now := m.now()
	figures := progressText(b, now)
	if m.width != nil {
		fmt.Fprintf(m.out, "\r\x1b[K%s", bar(b, figures, m.width()))
		if b.Ended() {
			fmt.Fprintln(m.out)
		}
		return
	}
	status := statusText(b)
	if status == m.status && !b.Ended() && (now.Before(m.next) || figures == m.shown) {
		return
	}
	m.shown, m.status, m.next = figures, status, now.Add(meterEvery)
	fmt.Fprintf(m.out, "%s  %s  %s\n", b.ID, status, figures)
}

// bar fits the progress of a batch into a row of width columns.
func bar(b client.Batch, figures string, width int) string {
	const longest, shortest = 30, 8
	text := fmt.Sprintf("%s  %s", statusText(b), figures)
	// brackets, a space, and the last column, which some terminals wrap at
	room := min(longest, width-len(text)-4)
	if room < shortest {
		return text[:min(len(text), max(0, width-1))]
	}
	full := 0
	if b.Counts.Total > 0 {
		full = room * b.Counts.Done() / b.Counts.Total
	}
	full = min(full, room)
	return fmt.Sprintf("[%s%s] %s", strings.Repeat("#", full), strings.Repeat("-", room-full), text)
}

// progressText is the figures of a batch in one line: 120/300 (40%), 31.5 lines/s, ETA 6s, 1
// failed, 2 retrying.
func progressText(b client.Batch, now time.Time) string {
	c, x := b.Counts, b.Tidefill
	share := 0.0
	if c.Total > 0 {
		share = 100 * float64(c.Done()) / float64(c.Total)
	}
	parts := []string{fmt.Sprintf("%d/%d (%.0f%%)", c.Done(), c.Total, math.Floor(share))}
	if !b.Ended() {
		if x.Rate > 0 {
			parts = append(parts, fmt.Sprintf("%.1f lines/s", x.Rate))
		}
		if left := time.Unix(x.ETA, 0).Sub(now); x.ETA > 0 && left > 0 {
			parts = append(parts, "ETA "+clock(left))
		}
	}
	if c.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", c.Failed))
	}
	if !b.Ended() {
		if x.Retrying > 0 {
			parts = append(parts, fmt.Sprintf("%d retrying", x.Retrying))
		}
		if x.Waiting != "" {
			parts = append(parts, "waiting: "+x.Waiting)
		}
	} else if start, end := b.InProgressAt, b.EndedAt(); start > 0 && end > start {
		parts = append(parts, "in "+clock(time.Duration(end-start)*time.Second))
	}
	return strings.Join(parts, ", ")
}
