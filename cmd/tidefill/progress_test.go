package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/client"
)

func TestProgressText(t *testing.T) {
	now := time.Unix(1000, 0)
	running := client.Batch{
		Status: "in_progress", Counts: client.Counts{Total: 300, Completed: 118, Failed: 1},
		Tidefill: client.Extensions{Rate: 31.46, ETA: 1065, Retrying: 2,
			Waiting: "runners are busy"},
	}
	if got, want := progressText(running, now),
		"119/300 (39%), 31.5 lines/s, ETA 1m05s, 1 failed, 2 retrying, waiting: runners are busy"; got != want {
		t.Errorf("running: got %q, want %q", got, want)
	}
	ended := client.Batch{Status: "completed", Counts: client.Counts{Total: 3, Completed: 3},
		InProgressAt: 900, CompletedAt: 1000}
	if got, want := progressText(ended, now), "3/3 (100%), in 1m40s"; got != want {
		t.Errorf("ended: got %q, want %q", got, want)
	}
}

func TestBarFitsTheTerminal(t *testing.T) {
	b := client.Batch{Status: "in_progress", Counts: client.Counts{Total: 200, Completed: 100}}
	for width := 1; width < 200; width++ {
		row := bar(b, progressText(b, time.Unix(0, 0)), width)
		if len(row) >= width {
			t.Fatalf("%d columns for a terminal of %d: %q", len(row), width, row)
		}
		if full, empty := strings.Count(row, "#"), strings.Count(row, "-"); full != empty &&
			full+1 != empty {
			t.Errorf("half a batch shows as %d of %d", full, full+empty)
		}
	}
}

func TestMeterWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	m := &meter{out: &out, now: func() time.Time { return now }}
	b := client.Batch{ID: "b", Status: "in_progress", Counts: client.Counts{Total: 100}}
	for range 100 { // ten seconds
		m.show(b)
		b.Counts.Completed++
		now = now.Add(100 * time.Millisecond)
	}
	b.Status = "completed"
	m.show(b)
	if got, want := strings.Count(out.String(), "\n"), 3; got != want {
		t.Errorf("%d lines in ten seconds and at the end, want %d:\n%s", got, want, out.String())
	}
}

func TestClock(t *testing.T) {
	for d, want := range map[time.Duration]string{
		400 * time.Millisecond: "0s", 59 * time.Second: "59s", 185 * time.Second: "3m05s",
		7620 * time.Second: "2h07m", 76 * time.Hour: "3d4h",
	} {
		if got := clock(d); got != want {
			t.Errorf("clock(%v) = %q, want %q", d, got, want)
		}
	}
}
