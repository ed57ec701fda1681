package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/app/console"
	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/dispatch/decision"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	_ "github.com/tidefill/tidefill/flowcontrol/builtin"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/telemetry"
)

// planner shows a pool for each name. Nothing shows the users of that with the name unseen.
type planner struct{ names []string }

func (p planner) Pools() (all []plan.PoolStatus) {
	for _, name := range p.names {
		all = append(all, plan.PoolStatus{ID: name, Models: []string{name}, Policy: "headroom",
			Runners: []plan.RunnerStatus{{ID: "gpu-1", Granted: "token_time"}}})
	}
	return all
}
func (p planner) Terms(time.Time) [][]flowcontrol.Term {
	all := make([][]flowcontrol.Term, len(p.names))
	for i, name := range p.names {
		if name == "unseen" {
			all[i] = []flowcontrol.Term{{Name: flowcontrol.TermUnseen, Value: 1}}
		}
	}
	return all
}
func (p planner) Warnings(time.Time) [][]flowcontrol.Warning {
	return make([][]flowcontrol.Warning, len(p.names))
}
func (p planner) Objectives(string) flowcontrol.SLO { return flowcontrol.SLO{} }

var began = time.Unix(1_800_000_000, 0)

// newDeps returns what a console shows that has pools of these names, with three decisions each.
func newDeps(names ...string) console.Deps {
	h := decision.NewHistory()
	r := decision.NewRecorder(h, planner{names})
	for i := range 3 {
		r.Tick(began.Add(time.Duration(i) * time.Second))
	}
	cfg := flowcontrol.DefaultConfig()
	return console.Deps{
		Version: "v1", Node: "n", Decisions: h, Flow: cfg.For,
		Degraded: func() []telemetry.Degradation { return nil },
		Waiting:  func() []string { return []string{} },
		Problems: func() []string { return nil },
		Requests: func() []plan.PoolStatus {
			chat := plan.UseCaseStatus{Name: "chat", Class: "critical", Requests: 60,
				Objective: 40 * time.Millisecond, P95: 35 * time.Millisecond, Attained: 0.99}
			return []plan.PoolStatus{{ID: "small", Requests: &plan.RequestsStatus{Places: 8,
				Classes:  []plan.ClassStatus{{Name: "critical", Waiting: 1, Running: 2}},
				UseCases: []plan.UseCaseStatus{chat}}}}
		},
		Failures: func() []dispatch.RunnerFailures {
			return []dispatch.RunnerFailures{{Pool: "m", Runner: "r", Failing: true, Bad: 9,
				Judged: 10, Causes: []store.Failure{{Count: 9, Status: 500, Sample: "boom"}}}}
		},
		StandsBy: func() bool { return false },
		Peers:    func(context.Context) []console.Peer { return nil },
		Batches:  func(int) ([]string, int, []string) { return nil, 0, nil },
		Summaries: func(context.Context, []string) ([]api.BatchSummary, error) {
			return nil, nil
		},
		Search: func(context.Context, api.BatchSearch) ([]string, string, error) {
			return nil, "", store.ErrBadCursor
		},
		Details: func(_ context.Context, id string) (api.BatchDetails, error) {
			return api.BatchDetails{}, fmt.Errorf("read batch %s: %w", id, store.ErrNotFound)
		},
		EndedLines: func(context.Context, string, string, int) ([]api.EndedLine, string, error) {
			return nil, "", api.ErrBadCursor
		},
		NeedsKey: func() bool { return true }, Open: func() bool { return false },
		History: func(context.Context, string, time.Time) ([]store.PoolHour, error) {
			return nil, nil
		},
		Usage: func(context.Context, store.UsageQuery) ([]store.Used, error) {
			return nil, nil
		},
		Scaling:         func() (*autoscale.Snapshot, error) { return &autoscale.Snapshot{}, nil },
		Registry:        func() (*registry.Catalogs, error) { return new(registry.Catalogs), nil },
		RegistrySources: func() []console.RegistrySource { return nil },
		Pools: func() *registry.Snapshot {
			return registry.New([]registry.Pool{{Name: "prod"}}, flowcontrol.DefaultConfig())
		},
		Now: func() time.Time { return began }, Logger: slog.New(slog.DiscardHandler),
	}
}

// serve returns the answer to a GET.
func serve(t testing.TB, deps console.Deps, target string) *httptest.ResponseRecorder {
	t.Helper()
	mux := http.NewServeMux()
	console.New(deps).Register(mux)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, r)
	return w
}

func decode[T any](t testing.TB, w *httptest.ResponseRecorder) (value T) {
	t.Helper()
	if err := json.Unmarshal(w.Body.Bytes(), &value); err != nil {
		t.Fatalf("status %d, not JSON (%v): %.300s", w.Code, err, w.Body)
	}
	return value
}

type decisions struct {
	Object  string
	Pool    string
	HasMore bool `json:"has_more"`
	Data    []struct {
		Time   float64
		Reason string
	}
}

type refusal struct {
	Error struct{ Message, Type, Param, Code string }
}

// Names of models have slashes, spaces and whatever else an upstream lists.
func TestPoolsAreFoundByAnyName(t *testing.T) {
	names := []string{"small", "meta-llama/Llama-3 70B", "a//b", "50%2F,x?y=z#w", "<b>é</b>", "..x"}
	deps := newDeps(names...)
	for _, name := range names {
		w := serve(t, deps, "/admin/pools/"+url.PathEscape(name)+"/decisions")
		if got := decode[decisions](t, w); w.Code != 200 || got.Pool != name || len(got.Data) != 3 {
			t.Errorf("%q: status %d, %s", name, w.Code, w.Body)
		}
	}
	list := decode[struct {
		Data []struct {
			Name     string
			Decision struct{ Runners []struct{ Reason string } }
		}
		Reasons map[string]struct{ Meaning string }
	}](t, serve(t, deps, "/admin/pools"))
	if len(list.Data) != len(names) || list.Data[1].Name != names[1] {
		t.Errorf("the pools are %+v", list.Data)
	}
	if reason := list.Data[0].Decision.Runners[0].Reason; list.Reasons[reason].Meaning == "" {
		t.Errorf("%q is not explained", reason)
	}
}

func TestUnknownPoolsAreNamed(t *testing.T) {
	for _, test := range []struct {
		names []string
		path  string
		want  []string
	}{
		{[]string{"small", "meta-llama/Llama-3"}, "/admin/pools/smal/decisions",
			[]string{`no pool "smal"`, `Did you mean "small"?`, `"meta-llama/Llama-3"`}},
		{nil, "/admin/pools/x/decisions", []string{"No pool is known yet"}},
		{[]string{"a/b"}, "/admin/pools/a/b/decisions", []string{"written as %2F"}},
		{nil, "/admin/nothing", []string{"/admin/nothing"}},
	} {
		w := serve(t, newDeps(test.names...), test.path)
		got := decode[refusal](t, w).Error
		if w.Code != 404 || got.Type != "invalid_request_error" || got.Code == "" {
			t.Errorf("%s: status %d, %s", test.path, w.Code, w.Body)
		}
		for _, want := range test.want {
			if !strings.Contains(got.Message, want) {
				t.Errorf("%s: %q lacks %q", test.path, got.Message, want)
			}
		}
	}
}

func TestQueriesSelectDecisions(t *testing.T) {
	for query, want := range map[string]struct {
		times []float64
		more  bool
	}{
		"":                            {[]float64{1800000000, 1800000001, 1800000002}, false},
		"limit=2":                     {[]float64{1800000001, 1800000002}, true},
		"since=1800000000&limit=1":    {[]float64{1800000001}, true},
		"since=1800000001.5":          {[]float64{1800000002}, false},
		"until=2027-01-15T08:00:00Z":  {[]float64{1800000000}, false},
		"since=&until=&limit=&step=":  {[]float64{1800000000, 1800000001, 1800000002}, false},
		"step=2s&terms=false&other=x": {[]float64{1800000000, 1800000002}, false},
		"since=1800000002":            {nil, false},
	} {
		w := serve(t, newDeps("m"), "/admin/pools/m/decisions?"+query)
		got := decode[decisions](t, w)
		var times []float64
		for _, d := range got.Data {
			times = append(times, d.Time)
		}
		if w.Code != 200 || got.HasMore != want.more || len(times) != len(want.times) ||
			len(times) > 0 && (times[0] != want.times[0] ||
				times[len(times)-1] != want.times[len(want.times)-1]) {
			t.Errorf("%q: status %d, times %v, more %t; want %+v", query, w.Code, times,
				got.HasMore, want)
		}
	}
}

// The console asks once in two seconds for what it draws, and not for all inputs.
func TestInputsAreLeftOutOnRequest(t *testing.T) {
	for query, want := range map[string]bool{"": true, "inputs=true": true, "terms=false": true,
		"inputs=false": false} {
		body := serve(t, newDeps("m"), "/admin/pools/m/decisions?"+query).Body.String()
		if strings.Contains(body, `"inputs":{"lines":`) != want {
			t.Errorf("%q: %s; want inputs: %t", query, body, want)
		}
	}
}

func TestBadQueriesAreRefused(t *testing.T) {
	for query, param := range map[string]string{
		"limit=0": "limit", "limit=1001": "limit", "limit=x": "limit", "since=soon": "since",
		"since=-1": "since", "since=NaN": "since", "since=1e300": "since", "until=Inf": "until",
		"since=20&until=10": "until", "step=0s": "step", "step=-1s": "step", "step=10": "step",
		"terms=perhaps": "terms", "inputs=perhaps": "inputs", "limit=%zz": "",
	} {
		w := serve(t, newDeps("m"), "/admin/pools/m/decisions?"+query)
		if got := decode[refusal](t, w).Error; w.Code != 400 || got.Param != param ||
			got.Message == "" {
			t.Errorf("%s: status %d, %s", query, w.Code, w.Body)
		}
	}
	if w := serve(t, newDeps(), "/admin/batches?limit=101"); w.Code != 400 {
		t.Errorf("batches: status %d", w.Code)
	}
}

func FuzzDecisions(f *testing.F) {
	f.Add("m", "since=1&until=2&limit=3&step=4s&terms=true")
	f.Add("a/b", "%")
	deps := newDeps("m")
	f.Fuzz(func(t *testing.T, pool, query string) {
		u := url.URL{Path: "/admin/pools/x/decisions", RawQuery: query}
		r := httptest.NewRequest(http.MethodGet, "/admin/pools", nil)
		r.URL = &u
		u.Path, u.RawPath = "/admin/pools/"+pool+"/decisions",
			"/admin/pools/"+url.PathEscape(pool)+"/decisions"
		mux, w := http.NewServeMux(), httptest.NewRecorder()
		console.New(deps).Register(mux)
		mux.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Fatalf("status %d: %s", w.Code, w.Body)
		}
		if w.Code/100 != 3 && !json.Valid(w.Body.Bytes()) {
			t.Fatalf("status %d, not JSON: %s", w.Code, w.Body)
		}
	})
}

func TestFailuresOfRunnersAreShown(t *testing.T) {
	w := serve(t, newDeps("m"), "/admin/pools")
	const want = `"failures":[{"runner":"r","answered":0,"failed":0,` +
		`"causes":[{"count":9,"status":500,"code":"","sample":"boom","runner":""}],` +
		`"failing":true,"since":null,"next_trial":null,` +
		`"text":"500 \"boom\", 9 of the last 10"}]`
	if got := w.Body.String(); !strings.Contains(got, want) {
		t.Errorf("got %s, want %s in it", got, want)
	}
}

func TestBatchesAreShown(t *testing.T) {
	deps := newDeps()
	asked := 0
	deps.Batches = func(limit int) ([]string, int, []string) {
		asked = limit
		return []string{"b1"}, 7, []string{"b0"}
	}
	deps.Summaries = func(_ context.Context, ids []string) (all []api.BatchSummary, err error) {
		for _, id := range ids {
			all = append(all, api.BatchSummary{ID: id, Tenant: "t", State: store.InProgress,
				Counts: store.Counts{Total: 9, Completed: 2, Failed: 1}, Waiting: "paused",
				Failures:  []store.Failure{{Count: 1, Status: 500, Runner: "r"}},
				CreatedAt: began})
			if id == "b1" {
				b := &all[0]
				b.Verdict, b.Finish = store.VerdictAtRisk, began.Add(2*time.Minute)
				b.Earliest, b.Latest = began.Add(time.Minute), began.Add(time.Hour)
			}
		}
		return all, nil
	}
	w := serve(t, deps, "/admin/batches?limit=3")
	const want = `{"id":"b1","tenant":"t","status":"in_progress","paused":false,"models":[],` +
		`"priority":0,"request_counts":{"total":9,"completed":2,"failed":1},"not_run":0,"in_flight":0,` +
		`"rate":0,"waiting":"paused","reason":null,` +
		`"failures":[{"count":1,"status":500,"code":"","sample":"","runner":"r"}],` +
		`"faults":[],"created_at":1800000000,"deadline":null,` +
		`"verdict":"at_risk","predicted_finish":1800000120,` +
		`"predicted_band":[1800000060,1800003600],` +
		`"predicted_finish_with_one_more":null,"ended_at":null}`
	if got := w.Body.String(); asked != 3 ||
		!strings.HasPrefix(got, `{"object":"list","total":7,"data":[`+want+`,{"id":"b0"`) ||
		!strings.Contains(got, `"verdict":null,"predicted_finish":null,"predicted_band":null`) {
		t.Errorf("limit %d, %s", asked, got)
	}
}

// A store that is away is no fault of the reader.
func TestAnUnreadableStoreIsReported(t *testing.T) {
	deps := newDeps()
	deps.Summaries = func(context.Context, []string) ([]api.BatchSummary, error) {
		return nil, errors.New("a secret path")
	}
	w := serve(t, deps, "/admin/batches")
	got := decode[refusal](t, w).Error
	if w.Code != 503 || got.Type != "server_error" || strings.Contains(got.Message, "secret") {
		t.Errorf("status %d, %s", w.Code, w.Body)
	}
}

func TestProtectionIsStated(t *testing.T) {
	for policy, want := range map[string]string{"headroom": "users are promised: first tokens",
		"aimd": "are not protected", "alone": "to itself",
		"unseen": "Nothing shows what interactive users feel, so batch work goes by its answers"} {
		deps := newDeps(policy)
		deps.Flow = func(string, []string) flowcontrol.Config {
			cfg := flowcontrol.DefaultConfig()
			switch policy {
			case "alone":
				cfg.Shared = false
			case "aimd":
				cfg.Policy = policy
			}
			return cfg
		}
		if got := serve(t, deps, "/admin/pools").Body.String(); !strings.Contains(got, want) {
			t.Errorf("%s: %s lacks %q", policy, got, want)
		}
	}
}

// The page loads its own files and nothing else, and no other site may frame or embed it.
func TestThePageIsLockedDown(t *testing.T) {
	deps := newDeps("m")
	for target, kind := range map[string]string{
		"/console": "text/html", "/console/console.js": "text/javascript",
		"/console/console.css": "text/css", "/console/icon.svg": "image/svg+xml",
		"/admin/pools": "application/json", "/admin/batches": "application/json",
		"/admin/pools/m/decisions": "application/json",
	} {
		w := serve(t, deps, target)
		h := w.Header()
		if w.Code != 200 || !strings.HasPrefix(h.Get("Content-Type"), kind) {
			t.Errorf("%s: status %d, %s", target, w.Code, h.Get("Content-Type"))
		}
		csp := h.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'",
			"frame-ancestors 'none'"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: the policy %q lacks %s", target, csp, part)
			}
		}
		if strings.Contains(csp, "unsafe") || h.Get("X-Content-Type-Options") != "nosniff" ||
			h.Get("Cross-Origin-Resource-Policy") != "same-origin" {
			t.Errorf("%s: the headers are %v", target, h)
		}
		if body := w.Body.String(); strings.Contains(body, "https://") ||
			strings.Contains(body, "innerHTML") || strings.Contains(body, " style=") {
			t.Errorf("%s names another server, or writes markup", target)
		}
	}
	for target, want := range map[string]int{"/": 302, "/console/": 302, "/console/other": 404,
		"/console/..%2Fconsole.go": 404} {
		if w := serve(t, deps, target); w.Code != want {
			t.Errorf("%s: status %d, want %d", target, w.Code, want)
		}
	}
}

// Of interactive requests that pass through, each pool shows its own; null: none do.
func TestPoolsShowRequests(t *testing.T) {
	list := decode[struct{ Data []client.Pool }](t, serve(t, newDeps("small", "large"),
		"/admin/pools"))
	r := list.Data[0].Requests
	if r == nil || r.Places != 8 || r.Bound != nil || len(r.Classes) != 1 ||
		r.Classes[0].Waiting != 1 || len(r.UseCases) != 1 || *r.UseCases[0].P95 != 35 ||
		*r.UseCases[0].Attained != 0.99 || list.Data[1].Requests != nil {
		t.Errorf("the pools show %+v and %+v", r, list.Data[1].Requests)
	}
}
