package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/store"
)

// outlook is an Outlook that answers what a test wants.
type outlook struct {
	asked  []Hypothetical
	answer func(ctx context.Context, b Hypothetical) (Preview, error)
}

func (o *outlook) Preview(ctx context.Context, b Hypothetical) (Preview, error) {
	o.asked = append(o.asked, b)
	return o.answer(ctx, b)
}

// with makes a service use the outlook.
func (o *outlook) with(_ *Config, d *Deps) { d.Outlook = o }

// batchBody is the body of a create request.
func batchBody(fileID string, more ...string) string {
	return "{" + strings.Join(append([]string{
		fmt.Sprintf(`"input_file_id":%q`, fileID), `"endpoint":"/v1/chat/completions"`,
		`"completion_window":"24h"`,
	}, more...), ",") + "}"
}

// hasNoBatch fails the test if the service has a batch.
func (s *service) hasNoBatch() {
	s.t.Helper()
	if n := len(s.get("/v1/batches").ok()["data"].([]any)); n != 0 {
		s.t.Errorf("there are %d batches, want none", n)
	}
}

const dryRunPath = "/v1/batches?dry_run=true"

func TestDryRunWithoutPredictions(t *testing.T) {
	s := newService(t)
	file := s.upload(line("a") + line("b"))
	o := s.post(dryRunPath, batchBody(file)).ok()
	reason := o["reason"].(string)
	delete(o, "reason")
	want := map[string]any{
		"object": "batch.dry_run", "endpoint": "/v1/chat/completions", "completion_window": "24h",
		"expires_at": float64(s.clock.now().Add(24 * time.Hour).Unix()), "errors": nil,
		"accepted": true, "verdict": nil, "predicted_finish": nil, "predicted_band": nil,
		"predicted_finish_with_one_more": nil, "lines": 2.0, "work_seconds": nil,
		"gpu_hours": nil, "models": []any{map[string]any{
			"model": "m", "lines": 2.0, "input_tokens": nil, "output_tokens": nil,
			"work_seconds": nil, "known_answers": nil}},
		"pools": []any{}, "nearest": nil, "windows": []any{},
		"affected": map[string]any{"own": 0.0, "others": 0.0, "batches": []any{}},
	}
	if diff := cmp.Diff(want, o); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !strings.Contains(reason, "predicts nothing") {
		t.Errorf("the reason is %q", reason)
	}
	s.hasNoBatch()
}

// A dry run fails as a create request does, and leaves as little behind.
func TestDryRunHasTheErrorsOfACreate(t *testing.T) {
	s := newService(t)
	file := s.upload(line("a"))
	for name, body := range map[string]string{
		"no JSON": "{", "unknown file": batchBody("file-x"), "array": "[]",
		"unknown key":    batchBody(file, `"tidefil":{}`),
		"unknown option": batchBody(file, `"tidefill":{"deadlin":"1h"}`),
		"past deadline":  batchBody(file, `"tidefill":{"deadline":1000}`),
		"bad metadata":   batchBody(file, `"metadata":{"a":1}`),
		"bad admission":  batchBody(file, `"tidefill":{"admission":"loose"}`),
		"wrong window":   strings.Replace(batchBody(file), "24h", "31d", 1),
		"wrong endpoint": strings.Replace(batchBody(file), "chat", "cat", 1),
		"large options":  batchBody(file, `"tidefill":{"x":"`+strings.Repeat("x", 70_000)+`"}`),
	} {
		dry, real := s.post(dryRunPath, body), s.post("/v1/batches", body)
		if dry.status != http.StatusBadRequest || dry.status != real.status ||
			dry.body != real.body {
			t.Errorf("%s: the dry run got %d %s, a create %d %s", name, dry.status, dry.body,
				real.status, real.body)
		}
	}
	s.do("POST", dryRunPath, strings.NewReader(batchBody(file)), "Content-Type",
		"text/plain").refused(http.StatusUnsupportedMediaType, "", "unsupported_media_type")
	s.post("/v1/batches?dry_run=perhaps", batchBody(file)).refused(http.StatusBadRequest,
		"dry_run", "invalid_value", "perhaps", "true")

	faulty := s.upload(line("a") + "nonsense\n" + line("a"))
	o := s.post(dryRunPath, batchBody(faulty)).ok()
	s.hasNoBatch()
	created := s.post("/v1/batches", batchBody(faulty)).ok()
	if diff := cmp.Diff(created["errors"], o["errors"]); diff != "" || o["accepted"] != false ||
		o["verdict"] != nil || !strings.Contains(o["reason"].(string), "errors") {
		t.Errorf("faulty input: got %v, a create has (-) %s", o, diff)
	}
	if created["status"] != "failed" {
		t.Errorf("the batch is %v", created["status"])
	}
}

func TestDryRunStoresNothing(t *testing.T) {
	s := newService(t)
	file := s.upload(line("a"))
	before := s.stored()
	key := []string{"Idempotency-Key", "k"}
	s.post(dryRunPath, batchBody(file), key...).ok()
	s.post("/v1/batches?dry_run=1", batchBody(file, `"metadata":{"a":"b"}`), key...).ok()
	s.hasNoBatch()
	if diff := cmp.Diff(before, s.stored()); diff != "" {
		t.Errorf("files (-before +after): %s", diff)
	}
	first := s.post("/v1/batches", batchBody(file), key...).ok()
	s.post(dryRunPath, batchBody(file, `"metadata":{"a":"b"}`), key...).ok()
	again := s.post("/v1/batches?dry_run=false", batchBody(file), key...).ok()
	if first["id"] != again["id"] {
		t.Errorf("a dry run took the Idempotency-Key: %v and %v", first["id"], again["id"])
	}
}

func TestDryRunShowsAPrediction(t *testing.T) {
	var at time.Time
	o := &outlook{}
	o.answer = func(_ context.Context, b Hypothetical) (Preview, error) {
		later := store.Forecast{Verdict: store.VerdictAtRisk, Finish: at.Add(time.Hour)}
		return Preview{
			Forecast: store.Forecast{Verdict: store.VerdictInfeasible, Finish: at.Add(
				30 * time.Hour), Earliest: at.Add(20 * time.Hour), Latest: at.Add(40 * time.Hour),
				OneMore: at.Add(20 * time.Hour)},
			Nearest: at.Add(29*time.Hour + 10*time.Minute),
			Windows: []store.Verdict{"infeasible", "infeasible", "infeasible", "at_risk", "ok"},
			Work:    90 * time.Minute,
			Models: []PreviewModel{{Model: "m", InputTokens: 12, OutputTokens: 340,
				Work: 90 * time.Minute, KnownAnswers: 7}},
			Pools: []PreviewPool{{Pool: "a", Replicas: 3, GPUHours: 4.5},
				{Pool: "b", Replicas: 1, GPUHours: 0.5}},
			Affected: []AffectedBatch{
				{ID: "batch_own", Tenant: b.Tenant, Before: store.Forecast{Verdict: "ok"},
					After: later},
				{ID: "batch_secret", Tenant: "other", After: later},
			},
		}, nil
	}
	s := newService(t, o.with)
	at = s.clock.now()
	file := s.upload(line("a") + line("b") + strings.Replace(line("c"), `"m"`,
		`"n","max_tokens":9`, 1))
	a := s.post(dryRunPath, batchBody(file, `"tidefill":{"priority":3,"max_concurrency":5,`+
		`"start_by":"1h"}`))
	if strings.Contains(a.body, "secret") {
		t.Errorf("the batch of another tenant is named: %s", a.body)
	}
	got := a.ok()
	unix := func(after time.Duration) float64 { return float64(at.Add(after).Unix()) }
	window := func(name, verdict string, feasible bool) any {
		return map[string]any{"completion_window": name, "verdict": verdict, "feasible": feasible}
	}
	want := map[string]any{
		"object": "batch.dry_run", "endpoint": "/v1/chat/completions", "completion_window": "24h",
		"expires_at": unix(24 * time.Hour), "errors": nil, "accepted": true, "reason": nil,
		"verdict": "infeasible", "predicted_finish": unix(30 * time.Hour),
		"predicted_finish_with_one_more": unix(20 * time.Hour),
		"predicted_band":                 []any{unix(20 * time.Hour), unix(40 * time.Hour)},
		"lines":                          3.0, "work_seconds": 5400.0, "gpu_hours": 5.0,
		"models": []any{
			map[string]any{"model": "m", "lines": 2.0, "input_tokens": 12.0,
				"output_tokens": 340.0, "work_seconds": 5400.0, "known_answers": 7.0},
			map[string]any{"model": "n", "lines": 1.0, "input_tokens": nil, "output_tokens": nil,
				"work_seconds": nil, "known_answers": nil}},
		"pools": []any{
			map[string]any{"pool": "a", "replicas": 3.0, "gpu_hours": 4.5},
			map[string]any{"pool": "b", "replicas": 1.0, "gpu_hours": 0.5}},
		"nearest": map[string]any{"deadline": unix(29*time.Hour + 10*time.Minute),
			"completion_window": "1d6h"},
		"windows": []any{window("1h", "infeasible", false), window("6h", "infeasible", false),
			window("24h", "infeasible", false), window("3d", "at_risk", true),
			window("7d", "ok", true)},
		"affected": map[string]any{"own": 1.0, "others": 1.0, "batches": []any{map[string]any{
			"id": "batch_own", "verdict_before": "ok", "verdict": "at_risk",
			"predicted_finish": unix(time.Hour), "predicted_band": nil,
			"predicted_finish_with_one_more": nil}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	asked := o.asked[0]
	if len(asked.Models) != 2 || asked.Models[0].PromptBytes == 0 {
		t.Fatalf("asked for %+v", asked)
	}
	if o := asked.Options; o.Priority != 3 || o.MaxConcurrency != 5 {
		t.Errorf("asked for priority %d, concurrency %d", o.Priority, o.MaxConcurrency)
	}
	asked.Models[0].PromptBytes, asked.Models[1].PromptBytes = 0, 0
	if diff := cmp.Diff(Hypothetical{Tenant: DefaultTenant, Created: at,
		Deadline: at.Add(24 * time.Hour), StartBy: at.Add(time.Hour), Options: asked.Options,
		Models: []HypotheticalLines{{Model: "m", Lines: 2},
			{Model: "n", Lines: 1, MaxTokens: 9, CappedLines: 1}},
		Windows: []time.Duration{time.Hour, 6 * time.Hour, day, 3 * day, 7 * day}},
		asked); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
	s.hasNoBatch()
}

func TestDryRunWhenThePredictionFails(t *testing.T) {
	o := &outlook{}
	s := newService(t, o.with)
	file := s.upload(line("a"))
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"failure": {errors.New("secret"), "failed; try again"},
		"timeout": {context.DeadlineExceeded, "took too long"},
	} {
		o.answer = func(context.Context, Hypothetical) (Preview, error) {
			return Preview{}, fmt.Errorf("ask: %w", test.err)
		}
		got := s.post(dryRunPath, batchBody(file)).ok()
		if got["verdict"] != nil || got["accepted"] != true || !strings.Contains(
			got["reason"].(string), test.want) {
			t.Errorf("%s: got %v", name, got)
		}
	}
	o.answer = func(context.Context, Hypothetical) (Preview, error) {
		return Preview{Unknown: "No process leads the pool yet."}, nil
	}
	if got := s.post(dryRunPath, batchBody(file)).ok(); got["reason"] !=
		"No process leads the pool yet." {
		t.Errorf("got %v", got)
	}
	o.answer = func(_ context.Context, b Hypothetical) (Preview, error) {
		if !b.Deadline.IsZero() {
			t.Errorf("the deadline is %v, want none", b.Deadline)
		}
		return Preview{Forecast: store.Forecast{Verdict: "ok"}, Work: time.Second}, nil
	}
	got := s.post(dryRunPath, strings.Replace(batchBody(file), "24h", "best_effort", 1)).ok()
	if got["verdict"] != nil || got["work_seconds"] != 1.0 || !strings.Contains(
		got["reason"].(string), "no deadline") {
		t.Errorf("best effort: got %v", got)
	}
}

func TestWindowTo(t *testing.T) {
	created := time.Unix(1000, 0)
	for length, want := range map[time.Duration]string{
		time.Second: "1m", 61 * time.Second: "2m", time.Hour: "1h", time.Hour + 1: "1h10m",
		350 * time.Minute: "5h50m", 6*time.Hour + 1: "7h", 24 * time.Hour: "24h",
		24*time.Hour + 1: "1d1h", 48 * time.Hour: "2d", 30 * day: "30d", 30*day + 1: "",
	} {
		got := windowTo(created, created.Add(length))
		if got != want {
			t.Errorf("%v: got %q, want %q", length, got, want)
		}
		if d, err := parseDuration(got); want != "" && (err != nil || d < length) {
			t.Errorf("%v: %q is %v, %v", length, got, d, err)
		}
	}
}
