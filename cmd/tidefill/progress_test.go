package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

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
