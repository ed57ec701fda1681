package api

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

// A batch has its verdict from its creation on, until a dispatcher reports another one.
func TestCreationAnswersWithTheVerdict(t *testing.T) {
	var at time.Time
	o := &outlook{answer: func(_ context.Context, b Hypothetical) (Preview, error) {
		return Preview{Forecast: store.Forecast{Verdict: store.VerdictAtRisk,
			Finish: at.Add(time.Hour)}}, nil
	}}
	s := newService(t, o.with)
	at = s.clock.now()
	check := func(what string, d map[string]any, verdict, finish any) {
		t.Helper()
		if d["verdict"] != verdict || d["predicted_finish"] != finish {
			t.Errorf("%s: got %v, %v, want %v, %v", what, d["verdict"], d["predicted_finish"],
				verdict, finish)
		}
	}
	finish := float64(at.Add(time.Hour).Unix())
	file := s.upload(line("a"))
	created := s.post("/v1/batches", batchBody(file)).ok()
	id := created["id"].(string)
	check("the creation", created["tidefill"].(map[string]any), "at_risk", finish)
	check("a moment later", s.details(id), "at_risk", finish)
	s.postProgress(id, store.Progress{Forecast: store.Forecast{Verdict: store.VerdictOK}})
	check("as a dispatcher reports", s.details(id), "ok", nil)

	other := s.post("/v1/batches", batchBody(file)).ok()["id"].(string)
	s.clock.advance(predictionLife)
	check("if no dispatcher reports", s.details(other), nil, nil)

	endless := s.post("/v1/batches", strings.Replace(batchBody(file), "24h", "best_effort", 1)).ok()
	check("without a deadline", endless["tidefill"].(map[string]any), nil, finish)
}

// Neither a prediction that fails or takes long, nor another creation that waits for one, keeps a
// batch from being created in time.
func TestCreationWithoutAPrediction(t *testing.T) {
	asked := make(chan struct{}, 10)
	o := &outlook{answer: func(ctx context.Context, _ Hypothetical) (Preview, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return Preview{}, ctx.Err()
	}}
	s := newService(t, o.with)
	file := s.upload(line("a"))
	create := func() (verdict any) {
		return s.post("/v1/batches", batchBody(file)).ok()["tidefill"].(map[string]any)["verdict"]
	}
	waits := make(chan any)
	began := time.Now()
	go func() { waits <- create() }()
	<-asked
	if verdict := create(); verdict != nil || len(asked) > 0 {
		t.Errorf("a second creation has the verdict %v, and asked %d times", verdict, len(asked))
	}
	if verdict := <-waits; verdict != nil {
		t.Errorf("the verdict is %v, want none", verdict)
	}
	if took := time.Since(began); took < createPreviewTimeout || took > previewTimeout {
		t.Errorf("the creation took %v, want a little more than %v", took, createPreviewTimeout)
	}
	o.answer = func(context.Context, Hypothetical) (Preview, error) {
		return Preview{}, errors.New("failure")
	}
	if verdict := create(); verdict != nil {
		t.Errorf("the verdict is %v, want none", verdict)
	}
}
