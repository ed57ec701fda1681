package api

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

// postProgress posts the progress of a batch as the dispatcher of a node does.
func (s *service) postProgress(id string, p store.Progress) {
	s.t.Helper()
	owner, err := s.meta.Register(s.t.Context(), "n", time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}
	p.Leads, p.UpdatedAt = true, s.clock.now()
	if err := s.meta.PostProgress(s.t.Context(), owner, map[string]store.ProgressPost{
		id: {Progress: p}}); err != nil {
		s.t.Fatal(err)
	}
}

// details returns the `tidefill` object of a batch.
func (s *service) details(id string) map[string]any {
	s.t.Helper()
	return s.get("/v1/batches/" + id).ok()["tidefill"].(map[string]any)
}

func TestForecastIsShown(t *testing.T) {
	s := newService(t)
	id := s.in(store.InProgress)
	at := s.clock.now()
	wants := func(what, verdict, finish, band, eta string) {
		t.Helper()
		d := s.details(id)
		for key, want := range map[string]string{"verdict": verdict, "predicted_finish": finish,
			"predicted_band": band, "eta": eta} {
			if got := fmt.Sprint(d[key]); d[key] != nil && got != want || d[key] == nil &&
				want != "null" {
				t.Errorf("%s: %s is %v, want %s", what, key, d[key], want)
			}
		}
	}
	unix := func(after time.Duration) string { return fmt.Sprint(float64(at.Add(after).Unix())) }
	wants("without a forecast", "null", "null", "null", "null")
	forecast := store.Forecast{Verdict: store.VerdictAtRisk, Finish: at.Add(time.Hour),
		Earliest: at.Add(50 * time.Minute), Latest: at.Add(2 * time.Hour)}
	s.postProgress(id, store.Progress{Forecast: forecast})
	band := fmt.Sprintf("[%s %s]", unix(50*time.Minute), unix(2*time.Hour))
	wants("before the first result", "at_risk", unix(time.Hour), band, unix(time.Hour))
	s.postProgress(id, store.Progress{Forecast: forecast, LinesPerSecond: 0.1})
	wants("at a rate", "at_risk", unix(time.Hour), band, unix(time.Hour))
	past := store.Forecast{Verdict: store.VerdictOK, Finish: at.Add(-5 * time.Second)}
	s.postProgress(id, store.Progress{Forecast: past, LinesPerSecond: 0.001})
	wants("a moment after the predicted end", "ok", unix(-5*time.Second), "null", unix(0))
	past.Finish = at.Add(-time.Minute)
	s.postProgress(id, store.Progress{Forecast: past, LinesPerSecond: 0.1})
	wants("long after it", "ok", unix(-time.Minute), "null", unix(10*time.Second))
	s.postProgress(id, store.Progress{Forecast: forecast, LinesPerSecond: 0.1})
	all, err := s.server.Summaries(t.Context(), []string{id})
	if err != nil || !all[0].Finish.Equal(at.Add(time.Hour)) ||
		!all[0].Latest.Equal(at.Add(2*time.Hour)) {
		t.Errorf("the summary of a batch at a rate is %+v, %v", all, err)
	}
	s.postProgress(id, store.Progress{Forecast: store.Forecast{Verdict: store.VerdictInfeasible}})
	wants("beyond the horizon", "infeasible", "null", "null", "null")
	if all, err := s.server.Summaries(t.Context(), []string{id}); err != nil ||
		all[0].Verdict != store.VerdictInfeasible {
		t.Errorf("the summary is %+v, %v", all, err)
	}
	s.postProgress(id, store.Progress{Forecast: forecast, LinesPerSecond: 0.1})
	s.change(id, func(b *store.Batch) { b.Paused = true })
	wants("while it is paused", "null", "null", "null", "null")
	if rate := s.details(id)["rate"]; rate != 0.0 {
		t.Errorf("the rate of a paused batch is %v", rate)
	}
	s.change(id, func(b *store.Batch) { b.Paused, b.State = false, store.Cancelling })
	wants("while it is cancelled", "null", "null", "null", "null")
	s.change(id, func(b *store.Batch) { b.State, b.CompletedAt = store.Completed, at })
	wants("at the end", "null", "null", "null", "null")
}

func TestChangedVerdictIsAnEvent(t *testing.T) {
	s := newService(t)
	id := s.in(store.InProgress)
	verdicts := []store.Verdict{store.VerdictAtRisk, store.VerdictInfeasible, store.VerdictOK}
	next := 0
	var changed time.Time
	post := func() {
		changed = time.Now()
		s.postProgress(id, store.Progress{Forecast: store.Forecast{Verdict: verdicts[next]}})
	}
	readEvents(t, s.listen(id), func(e event) bool {
		switch e.name {
		case "progress":
			if next == 0 {
				post()
			}
		case "verdict":
			got := answer{t: t, body: e.data}.object()
			if got["verdict"] != string(verdicts[next]) || len(got) != 4 {
				t.Errorf("event %d is %s, want %s", next, e.data, verdicts[next])
			}
			if took := time.Since(changed); took > time.Second {
				t.Errorf("the event came after %v, want a second at most", took)
			}
			if next++; next < len(verdicts) {
				post()
			}
		}
		return next == len(verdicts)
	})
	if next != len(verdicts) {
		t.Errorf("got %d events of verdicts, want %d", next, len(verdicts))
	}
}
