package api

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/store"
)

func TestEveryAnswerHasAnID(t *testing.T) {
	s := newService(t)
	for name, test := range map[string]struct {
		sent string
		kept bool
	}{
		"a sane id": {"my-id.42", true}, "none": {"", false}, "with a space": {"my id", false},
		"not ASCII": {"größe", false}, "too long": {strings.Repeat("x", 129), false},
		"the longest": {strings.Repeat("x", 128), true},
	} {
		for _, path := range []string{"/v1/files", "/v1/files/none", "/v1/nowhere"} {
			header := s.get(path, "X-Request-Id", test.sent).header
			got := header.Get("X-Request-Id")
			if test.kept && got != test.sent || !test.kept && (!strings.HasPrefix(got, "req_") ||
				len(got) != 28) {
				t.Errorf("%s: sent id %q, got %q", name, test.sent, got)
			}
			if header.Get("Openai-Processing-Ms") == "" ||
				header.Get("Openai-Version") != "2020-10-01" {
				t.Errorf("%s: got headers %v, want openai-processing-ms and openai-version", path,
					header)
			}
		}
	}
}

func TestVersion(t *testing.T) {
	s := newService(t, func(_ *Config, d *Deps) { d.Version = "v7" })
	if got := s.get("/version").object()["version"]; got != "v7" {
		t.Errorf("got version %v", got)
	}
}

func TestUnknownRoutesAndMethods(t *testing.T) {
	s := newService(t)
	for _, path := range []string{"/", "/v1", "/v1/file", "/v1/files/", "/v1/files/a/b",
		"/v1/uploads/x", "/metrics"} {
		s.get(path).refused(404, "", "unknown_url", path)
	}
	for _, test := range []struct{ method, path, allowed string }{
		{"PUT", "/v1/files", "GET, HEAD, POST"},
		{"POST", "/v1/files/x", "DELETE, GET, HEAD"},
		{"DELETE", "/v1/files/x/content", "GET, HEAD"},
		{"GET", "/v1/uploads", "POST"},
		{"POST", "/v1/models", "GET, HEAD"},
		{"BREW", "/v1/models", "GET, HEAD"},
	} {
		a := s.do(test.method, test.path, nil)
		a.refused(405, "", "method_not_allowed", test.allowed)
		if got := a.header.Get("Allow"); got != test.allowed {
			t.Errorf("%s %s: got Allow %q, want %q", test.method, test.path, got, test.allowed)
		}
	}
}

func TestErrorsBecomeAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		err      error
		status   int
		code     string
		says     string
		isLogged bool
	}{
		"our own": {invalid("limit", "invalid_value", "too much"), 400, "invalid_value",
			"too much", false},
		"wrapped": {fmt.Errorf("list: %w", invalid("limit", "invalid_value", "too much")), 400,
			"invalid_value", "too much", false},
		"not found": {fmt.Errorf("load x: %w", store.ErrNotFound), 404, "", "No such object",
			false},
		"bad cursor": {fmt.Errorf("list: %w", store.ErrBadCursor), 400, "invalid_value", "after",
			false},
		"conflict": {fmt.Errorf("update: %w", store.ErrConflict), 409, "conflict", "again",
			false},
		"full disk": {fmt.Errorf("write /secret/path: %w", store.ErrNoSpace), 507,
			"insufficient_storage", "no space", true},
		"unknown error": {fmt.Errorf("open /secret/path: broken"), 500, "", "internal", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			s.server.route("/test", methods{"GET": func(http.ResponseWriter, *http.Request) error {
				return test.err
			}})
			a := s.get("/test")
			if a.status != test.status || strings.Contains(a.body, "secret") || !strings.Contains(
				a.body, test.says) {
				t.Errorf("got %d %s, want %d with %q and no secret", a.status, a.body, test.status,
					test.says)
			}
			code := a.object()["error"].(map[string]any)["code"]
			if code != any(test.code) && !(test.code == "" && code == nil) {
				t.Errorf("got code %v, want %q", code, test.code)
			}
			if logged := strings.Contains(s.logs.String(),
				test.err.Error()); logged != test.isLogged {
				t.Errorf("got logs %q, want the error in it: %v", s.logs, test.isLogged)
			}
		})
	}
}

func TestErrorHeaders(t *testing.T) {
	w := httptest.NewRecorder()
	w.Header().Set("Etag", "x")
	writeError(w, &httpError{Status: 409, RetryAfter: 1500 * time.Millisecond, NoRetry: true})
	if h := w.Header(); h.Get("Retry-After") != "2" || h.Get("X-Should-Retry") != "false" ||
		h.Get("Etag") != "" {
		t.Errorf("got headers %v, want Retry-After 2, X-Should-Retry false and no ETag", h)
	}
}

func TestPanicsAreAnswered(t *testing.T) {
	s := newService(t)
	s.server.route("/early", methods{"GET": func(http.ResponseWriter, *http.Request) error {
		panic("boom")
	}})
	s.server.route("/late", methods{"GET": func(w http.ResponseWriter, _ *http.Request) error {
		w.Write([]byte("half"))
		http.NewResponseController(w).Flush()
		panic("boom")
	}})
	s.get("/early").refused(500, "", "", "internal")
	if !strings.Contains(s.logs.String(), "boom") {
		t.Errorf("got logs %q, want the panic in it", s.logs)
	}
	resp, err := http.Get(s.url + "/late")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := resp.Body.Read(make([]byte, 100)); err == nil {
		if _, err = resp.Body.Read(make([]byte, 100)); err == nil {
			t.Error("an incomplete answer reads as complete")
		}
	}
}

func TestHugeBodiesAreRefused(t *testing.T) {
	s := newService(t)
	huge := `{"filename":"` + strings.Repeat("x", maxBody) + `"}`
	s.post("/v1/uploads", huge).refused(413, "", "", "1048576")
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := newService(t, func(_ *Config, d *Deps) { d.Registerer = registry })
	s.upload(line("a"))
	s.get("/v1/files/none")
	s.get("/v1/files/other")
	s.get("/nowhere")
	want := []string{"200 POST /v1/files: 1", "404 GET /v1/files/{id}: 2", "404 GET unknown: 1"}
	s.eventually("the requests to be counted", func() bool {
		return slices.Equal(counted(t, registry, "tidefill_http_requests_total"), want)
	})
	if got, want := counted(t, registry, "tidefill_uploaded_bytes_total"),
		fmt.Sprintf(": %d", len(line("a"))); len(got) != 1 || !strings.HasSuffix(got[0], want) {
		t.Errorf("got uploaded bytes %q, want %q", got, want)
	}
	if _, err := New(DefaultConfig(), Deps{Store: s.server.deps.Store,
		Registerer: registry}); err == nil {
		t.Error("a second server has registered the same metrics")
	}
}

// counted returns the value of a counter.
func counted(t *testing.T, registry *prometheus.Registry, name string) (lines []string) {
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			lines = append(lines, fmt.Sprintf("%s %s %s: %v", labels["code"], labels["method"],
				labels["route"], m.GetCounter().GetValue()))
		}
	}
	slices.Sort(lines)
	return lines
}

func TestModels(t *testing.T) {
	created := time.Unix(1_700_000_000, 0)
	s := newService(t, func(_ *Config, d *Deps) {
		d.Models = func() []ModelInfo {
			return []ModelInfo{{ID: "meta-llama/Llama-3", Created: created, OwnedBy: "meta"}, {
				ID: "m"}}
		}
	})
	data := s.get("/v1/models").ok()["data"].([]any)
	if len(data) != 2 || data[0].(map[string]any)["id"] != "meta-llama/Llama-3" {
		t.Errorf("got models %v", data)
	}
	for _, path := range []string{"/v1/models/meta-llama/Llama-3",
		"/v1/models/meta-llama%2FLlama-3"} {
		got := s.get(path).ok()
		if got["id"] != "meta-llama/Llama-3" || got["object"] != "model" ||
			got["created"] != float64(created.Unix()) || got["owned_by"] != "meta" {
			t.Errorf("%s: got %v", path, got)
		}
	}
	s.get("/v1/models/gpt-4").refused(404, "model", "model_not_found", "gpt-4")
	empty := newService(t)
	if data := empty.get("/v1/models").ok()["data"]; data == nil {
		t.Error("got data null for no models, want []")
	}
}

func TestOnlyJSONIsTakenForJSON(t *testing.T) {
	s := newService(t)
	const upload = `{"filename":"a.jsonl","purpose":"batch","bytes":1,"mime_type":"x"}`
	for kind, ok := range map[string]bool{
		"application/json": true, "application/json; charset=utf-8": true, "Application/JSON": true,
		"application/merge-patch+json":      true,
		"application/x-www-form-urlencoded": false, "text/plain": false,
		"text/plain;application/json": false, "": false,
		"multipart/form-data; boundary=x": false, "json": false,
	} {
		// of a known length, and chunked
		for _, body := range []io.Reader{strings.NewReader(upload),
			io.MultiReader(strings.NewReader(upload))} {
			a := s.do("POST", "/v1/uploads", body, "Content-Type", kind)
			if ok {
				a.ok()
			} else {
				a.refused(415, "", "unsupported_media_type", "Content-Type: application/json")
			}
		}
	}
	// SDKs send no body for these, with and without a type.
	id := s.create(line("a"))["id"].(string)
	s.do("POST", "/v1/batches/"+id+"/pause", nil).ok()
	s.do("POST", "/v1/batches/"+id+"/cancel", nil, "Content-Type", "application/json").ok()
	u := s.post("/v1/uploads", upload).ok()["id"].(string)
	s.do("POST", "/v1/uploads/"+u+"/cancel", nil).ok()
}

// Whoever has a wrong base URL, or sends an interactive request, learns what to do.
func TestUnknownURLsNameTheRemedy(t *testing.T) {
	s := newService(t)
	for path, want := range map[string]string{
		"/v1/chat/completions": "This server takes batches only.",
		"/chat/completions":    "This server takes batches only.",
		"/batches":             "The base URL must end in /v1.",
		"/files/file-1":        "The base URL must end in /v1.",
		"/v1/v1/batches":       "The base URL has /v1 twice.",
		"/":                    "the base URL that ends in /v1. GET /openapi.json describes it.",
		"/console":             "which its configuration names as admin_listen",
		"/console/":            "which its configuration names as admin_listen",
		"/admin/pools":         "which its configuration names as admin_listen",
		"/v1/nothing":          "GET /openapi.json lists the URLs.",
	} {
		a := s.get(path)
		if a.refused(404, "", "unknown_url", path); !strings.Contains(a.body, want) {
			t.Errorf("%s: %s, want %q", path, a.body, want)
		}
	}
}
