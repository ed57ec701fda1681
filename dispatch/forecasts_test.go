package dispatch_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/store"
)

// A forecast reaches progress, metrics and the log, and a batch that can't meet its deadline goes
// behind one that can, although its deadline is earlier.
func TestForecastsAreShownAndFollowed(t *testing.T) {
	w, log, collectors := newWorld(t), &jsonLog{}, prometheus.NewRegistry()
	answer, open := gate()
	defer open()
	var mu sync.Mutex
	var order []bool // whether a line is of the first batch
	up := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		order = append(order, bytes.Contains(body, []byte("say late")))
		mu.Unlock()
		answer(w, r)
	}, "m")
	d, _ := w.dispatcher("a", func(c *dispatch.Config, d *dispatch.Deps) {
		log.into(c, d)
		d.Registerer, d.Scheduler.Policy = collectors, "edf"
		d.Registry = fixedLines(1)
	}, up.URL)
	due := func(in time.Duration) func(*store.Batch) {
		return func(b *store.Batch) { b.Deadline = time.Now().Add(in) }
	}
	// More than start while the lines of the other batch are read.
	lateLines := make([]string, 2000)
	for i := range lateLines {
		lateLines[i] = chatLine(fmt.Sprint("late-", i), "m")
	}
	late := w.submit(lateLines, due(time.Hour))
	// Of batches that are loaded at once either may be ready first, and take the only line.
	awaitThat(t, "the first batch runs", func() bool { return w.progress(late).InFlight == 1 })
	fine := w.submit(chatLines(20, "m"), due(2*time.Hour))
	awaitThat(t, "the second batch waits", func() bool { return w.progress(fine).Waiting != "" })
	at := time.Now().Add(3 * time.Hour)
	forecasts := map[string]store.Forecast{
		late: {Verdict: store.VerdictInfeasible, Finish: at, Earliest: at.Add(-time.Hour),
			Latest: at.Add(time.Hour)},
		fine: {Verdict: store.VerdictOK, Finish: at},
	}
	d.SetForecasts(forecasts)
	d.SetForecasts(forecasts) // no change
	awaitThat(t, "the forecasts are posted", func() bool {
		return w.progress(late).Forecast == forecasts[late].Seconds() &&
			w.progress(fine).Forecast == forecasts[fine].Seconds()
	})
	if n := metricOf(t, collectors, "tidefill_batches_by_verdict"); n != 2 {
		t.Errorf("%v batches have a verdict, want 2", n)
	}
	open()
	w.awaitEnd(fine)
	mu.Lock()
	first := slices.Index(order, false)
	if first == 0 || slices.Contains(order[first:first+20], true) {
		t.Errorf("lines of the late batch went before the other: %v", order)
	}
	mu.Unlock()
	forecasts[late] = store.Forecast{Verdict: store.VerdictOK}
	d.SetForecasts(forecasts)
	d.SetForecasts(nil)
	if e := log.of(t, "the deadline of a batch can't be met"); len(e) != 1 ||
		e[0]["batch_id"] != late || e[0]["tenant"] != "default" || e[0]["level"] != "WARN" {
		t.Errorf("the log has %v", e)
	}
	if e := log.of(t, "the deadline of a batch can be met again"); len(e) != 1 ||
		e[0]["batch_id"] != late || e[0]["was"] != "infeasible" {
		t.Errorf("the log has %v", e)
	}
}

// A process that leads nothing posts the forecasts that it has, and withdraws them.
func TestForecastsOfAProcessThatStandsBy(t *testing.T) {
	w := newWorld(t)
	m, n := serve(t, nil, "m"), serve(t, nil, "n")
	other := w.submit(chatLines(1, "n"), nil)
	w.dispatcher("b", waitForModels, n.URL)
	w.awaitEnd(other)
	d, _ := w.dispatcher("a", waitForModels, m.URL)
	id := w.submit(chatLines(4, "m"), func(b *store.Batch) { b.Paused = true })
	awaitThat(t, "the batch is led", func() bool { return w.progress(id).Leads })
	d.SetForecasts(map[string]store.Forecast{id: {Verdict: store.VerdictAtRisk}})
	awaitThat(t, "the forecast is posted", func() bool {
		return w.progress(id).Forecast.Verdict == store.VerdictAtRisk
	})
	to := w.settings(dispatch.Upstream{URL: n.URL})
	to.WaitForModels = true
	apply(t, d, to)
	awaitThat(t, "the process stands by", d.StandsBy)
	d.SetForecasts(map[string]store.Forecast{id: {Verdict: store.VerdictInfeasible}})
	awaitThat(t, "the next forecast is posted", func() bool {
		return w.progress(id).Forecast.Verdict == store.VerdictInfeasible
	})
	d.SetForecasts(nil)
	awaitThat(t, "the forecast is withdrawn", func() bool {
		return w.progress(id).Forecast.Verdict == ""
	})
}
