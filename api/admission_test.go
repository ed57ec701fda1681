package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

// An infeasible batch is refused if the operator or the user says so, and created otherwise.
func TestAdmission(t *testing.T) {
	var at time.Time
	nearest := 7 * time.Hour
	o := &outlook{answer: func(_ context.Context, b Hypothetical) (Preview, error) {
		p := Preview{Forecast: store.Forecast{Verdict: store.VerdictInfeasible, Finish: at.Add(
			nearest)}}
		if nearest > 0 {
			p.Nearest = at.Add(nearest)
			if !b.Deadline.Before(p.Nearest) {
				p.Verdict = store.VerdictAtRisk
			}
		}
		return p, nil
	}}
	strict := `"tidefill":{"admission":"strict"}`
	for _, operator := range []string{AdvisoryAdmission, StrictAdmission} {
		s := newService(t, o.with, diskJournals(t), func(c *Config, _ *Deps) {
			c.Admission = operator
		})
		at = s.clock.now()
		file := s.upload(line("a"))
		body := func(window string, more ...string) string {
			return strings.Replace(batchBody(file, more...), "24h", window, 1)
		}
		create := func(body string) answer { return s.post("/v1/batches", body) }
		refused := func(a answer, param string, words ...string) {
			t.Helper()
			a.refused(http.StatusBadRequest, param, "deadline_infeasible", words...)
		}
		refused(create(body("1h", strict)), "completion_window", "'1h'", "'7h'")
		refused(create(body("24h", strings.Replace(strict, "{", `{"deadline":"2h",`, 1))),
			"tidefill.deadline", at.Add(2*time.Hour).UTC().Format(time.RFC3339), "7h",
			at.Add(nearest).UTC().Format(time.RFC3339))
		s.hasNoBatch()
		key := []string{"Idempotency-Key", "k"}
		refused(s.post("/v1/batches", body("1h", strict), key...), "completion_window")
		s.post("/v1/batches", body("7h", strict), key...).ok() // the key is free
		create(body("best_effort", strict)).ok()

		for _, relaxed := range []string{body("1h"), body("1h", `"tidefill":{}`),
			body("1h", `"tidefill":{"admission":"advisory"}`)} {
			dry := s.post(dryRunPath, relaxed).ok()
			if dry["verdict"] != "infeasible" || dry["accepted"] != (operator != "strict") {
				t.Errorf("%s: the dry run is %v", operator, dry)
			}
			if operator == StrictAdmission {
				refused(create(relaxed), "completion_window", "'7h'")
			} else if b := create(relaxed).ok(); b["status"] != "validating" {
				t.Errorf("the batch is %v", b["status"])
			}
		}
		nearest = 0
		refused(create(body("1h", strict)), "completion_window", "'best_effort'")
		nearest = 7 * time.Hour

		faulty := s.upload("nonsense\n")
		if b := create(strings.Replace(body("1h", strict), file, faulty, 1)).ok(); b["status"] !=
			"failed" {
			t.Errorf("with faulty input the batch is %v, want it failed", b["status"])
		}
		id := create(body("7h", strict)).ok()["id"].(string)
		s.end(id, []string{`"a"`})
		stored := len(s.stored())
		refused(s.retry(id, `{"completion_window":"1h"}`), "completion_window", "'7h'")
		if n := len(s.stored()); n != stored {
			t.Errorf("a refused retry left %d blobs", n-stored)
		}
		s.retry(id, "").ok()
	}
}

func TestStrictAdmissionWithoutPredictions(t *testing.T) {
	strict := func(c *Config, _ *Deps) { c.Admission = StrictAdmission }
	newService(t, strict).create(line("a"))
	o := &outlook{answer: func(context.Context, Hypothetical) (Preview, error) {
		return Preview{}, errors.New("failure")
	}}
	newService(t, strict, o.with).create(line("a"))
	o.answer = func(context.Context, Hypothetical) (Preview, error) {
		return Preview{Unknown: "no"}, nil
	}
	newService(t, strict, o.with).create(line("a"))
	if len(o.asked) != 2 {
		t.Errorf("the outlook was asked %d times, want twice", len(o.asked))
	}
	config := DefaultConfig()
	config.Admission = "loose"
	if err := config.Validate(); err == nil || !strings.Contains(err.Error(),
		"advisory or strict") {
		t.Errorf("got %v", err)
	}
}
