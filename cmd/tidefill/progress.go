package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

// progressInterval is the time between two reports while the state of a batch stays the same.
const progressInterval = 5 * time.Second

// batchProgress reports the progress of a batch every few seconds, and at once when its state
// or its verdict changes.
type batchProgress struct {
	out io.Writer
	now func() time.Time

	shown   string
	status  string
	verdict string
	next    time.Time // when the next report is due
}

func newBatchProgress(out io.Writer) *batchProgress {
	return &batchProgress{out: out, now: time.Now}
}

func (p *batchProgress) show(b client.Batch) {
	now := p.now()
	figures := progressText(b, now)
	status := statusText(b)
	if status == p.status && b.Tidefill.Verdict == p.verdict && !b.Ended() &&
		(now.Before(p.next) || figures == p.shown) {
		return
	}
	p.shown, p.status, p.next = figures, status, now.Add(progressInterval)
	p.verdict = b.Tidefill.Verdict
	printf(p.out, "%s  %s  %s\n", b.ID, status, figures)
}

// progressText returns the figures of a batch: 120/300 (40%), 31.5 lines/s, ETA 6s, 1 failed, 2
// retrying.
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
			parts = append(parts, "ETA "+humanize.Duration(left))
		}
	}
	if c.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", c.Failed))
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
