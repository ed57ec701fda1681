package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

// stopped is a batch that was cancelled after one line had failed.
var stopped = client.Batch{ID: "batch_1", Status: "cancelled", InProgressAt: 900,
	CancelledAt: 1000, Counts: client.Counts{Total: 10, Completed: 3, Failed: 7},
	Tidefill: client.Extensions{NotRun: 6}}

func TestProgressText(t *testing.T) {
	now := time.Unix(1000, 0)
	running := client.Batch{
		Status: "in_progress", Counts: client.Counts{Total: 300, Completed: 118, Failed: 1},
		Tidefill: client.Extensions{Rate: 31.46, ETA: 1065, Retrying: 2,
			Waiting: "shed: runners are busy. Wait."},
	}
	want := "119/300 (39%), 31.5 lines/s, ETA 1m05s, 1 failed, 2 retrying, " +
		"waiting: shed: runners are busy"
	if got := progressText(running, now); got != want {
		t.Errorf("running: got %q, want %q", got, want)
	}
	running.Tidefill.Verdict = "at_risk"
	if got := progressText(running, now); !strings.Contains(got, "1 failed, deadline at risk, 2") {
		t.Errorf("at risk: got %q", got)
	}
	running.Tidefill.Verdict = "ok"
	if got := progressText(running, now); got != want {
		t.Errorf("with a verdict that is no news: got %q, want %q", got, want)
	}
	ended := client.Batch{Status: "completed", Counts: client.Counts{Total: 3, Completed: 3},
		InProgressAt: 900, CompletedAt: 1000}
	if got, want := progressText(ended, now), "3/3 (100%), in 1m40s"; got != want {
		t.Errorf("ended: got %q, want %q", got, want)
	}
	want = "4/10 (40%), 1 failed, 6 not run, in 1m40s"
	if got := progressText(stopped, now); got != want {
		t.Errorf("cancelled: got %q, want %q", got, want)
	}
}

func TestBatchProgressIsBrief(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := &batchProgress{out: &out, now: func() time.Time { return now }}
	b := client.Batch{ID: "b", Status: "in_progress", Counts: client.Counts{Total: 100}}
	for range 100 { // ten seconds
		p.show(b)
		b.Counts.Completed++
		now = now.Add(100 * time.Millisecond)
	}
	b.Tidefill.Verdict = "infeasible"
	p.show(b)
	p.show(b)
	b.Status = "completed"
	p.show(b)
	if got, want := strings.Count(out.String(), "\n"), 4; got != want {
		t.Errorf("%d rows in ten seconds, at a new verdict and at the end, want %d:\n%s", got,
			want, out.String())
	}
}

func TestForecastText(t *testing.T) {
	const at = 1_800_000_000
	for _, test := range []struct {
		forecast client.Forecast
		want     []string // parts
	}{
		{client.Forecast{}, nil},
		{client.Forecast{Verdict: "infeasible"}, []string{"deadline can't be met"}},
		{client.Forecast{Verdict: "at_risk", PredictedFinish: at}, []string{"deadline at risk",
			", done " + humanize.Instant(at)}},
		{client.Forecast{Verdict: "ok", PredictedFinish: at, PredictedBand: []int64{at - 60,
			at + 60}}, []string{"deadline will be met", ", done " + humanize.Instant(at),
			", 8 in 10 between " + humanize.Instant(at-60) + " and " +
				humanize.Instant(at+60)}},
		{client.Forecast{PredictedFinish: at, WithOneMore: at - 600}, []string{"done " +
			humanize.Instant(at), "; with one more runner " + humanize.Instant(at-600)}},
	} {
		if got, want := forecastText(test.forecast), strings.Join(test.want, ""); got != want {
			t.Errorf("%+v: got %q, want %q", test.forecast, got, want)
		}
	}
}

func TestLiveRow(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := &batchProgress{out: &out, now: func() time.Time { return now },
		screen: screen{terminal: true, colors: true, columns: 80}}
	b := client.Batch{ID: "batch_Fps2iyiA0q6kaWEuVfFffC67", Status: "in_progress",
		Counts: client.Counts{Total: 50000, Failed: 7}}
	for range 40 {
		p.show(b)
		b.Counts.Completed += 625
		now = now.Add(time.Second)
	}
	b.Tidefill.Waiting = strings.Repeat("long ", 40)
	p.show(b)
	rows := strings.Split(codes.ReplaceAllString(out.String(), ""), "\r")
	last := rows[len(rows)-1]
	const want = "batch_Fps2iyiA  █████░░░░░  25007/50000 (50%), 625.0 lines/s, ETA 39s, 7 failed"
	if got := []rune(last); len(got) > 79 || !strings.HasPrefix(want, string(got[:len(got)-1])) {
		t.Errorf("last row %q of %d columns", last, len(got))
	}
	if strings.Contains(out.String(), "\n") {
		t.Errorf("the row does not stay one: %q", out.String())
	}
	b.Status = "completed"
	p.show(b)
	if got := out.String(); !strings.HasSuffix(got, "\n") || strings.Count(got, "\n") != 1 {
		t.Errorf("the end is %q", got[len(got)-100:])
	}
}

// The daemon's own rate is of some seconds: an end expected by it jumps.
func TestRatesAreSteady(t *testing.T) {
	var p pace
	now := time.Unix(1000, 0)
	b := client.Batch{Status: "in_progress", Counts: client.Counts{Total: 10000}}
	low, high := 1e9, 0.0
	for second := range 200 {
		if second%2 == 0 { // 10 lines a second, in bursts
			b.Counts.Completed += 20
		}
		b.Tidefill.Rate = float64(20 * (1 - second%2))
		p.add(now, &b)
		if second > 60 {
			low, high = min(low, b.Tidefill.Rate), max(high, b.Tidefill.Rate)
		}
		now = now.Add(time.Second)
	}
	if low < 9 || high > 11 {
		t.Errorf("rates from %.1f to %.1f, want 10", low, high)
	}
	if n := len(p.samples); n > 70 {
		t.Errorf("%d samples are kept", n)
	}
	left := float64(10000-b.Counts.Completed) / 10
	if got := float64(b.Tidefill.ETA - now.Unix()); got < 0.85*left || got > 1.15*left {
		t.Errorf("expected in %.0f s, want %.0f", got, left)
	}
	b.Counts.Completed = 5 // after a restart of the daemon
	b.Tidefill.Rate = 3
	if p.add(now, &b); b.Tidefill.Rate != 3 {
		t.Errorf("a rate of %.1f by counts that fell", b.Tidefill.Rate)
	}
}
