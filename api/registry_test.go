package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/store"
)

const templateText = `
- name: NAME
  version: v1
  status: STATUS
  spec:
    engine: {type: vllm, version: "1", image: "secret/image:1"}
    model_source: {type: local, uri: m}
    accelerator: {type: cpu, count: 1}
    engine_args: {max_num_seqs: 256, api_keys: [TOPSECRET]}
    provider_config: {type: k8s}
    supported_endpoints: [/v1/chat/completions]
    deployment_mode: shared
`

const profilesText = `
default: day
items:
- name: day
- name: fast
  spec:
    scheduling:
      completion_window: 1h
      priority: high
      max_concurrency: 8
      request_timeout_seconds: 60
      retry_policy: {max_retries: 1, backoff_seconds: [1, 7], retryable_errors: [500]}
      allow_preempt: true
      provider_preference: [a, b]
    quota: {max_requests_per_batch: 2, max_input_size_mb: 1, max_output_size_gb: 3}
    storage: {backend: s3, bucket: results, region: r, credentials_secret_ref: s3-secret}
    openai_service_tier_alias: flex
- name: theirs
  visible_to: [somebody]
- name: loose
  spec: {scheduling: {completion_window: best_effort, allow_spot: true}}
`

func template(name, status string) string {
	return strings.NewReplacer("NAME", name, "STATUS", status).Replace(templateText)
}

// catalogs is a registry that a test changes.
type catalogs struct {
	now    atomic.Pointer[registry.Catalogs]
	unread error
}

func (c *catalogs) read(texts ...string) {
	var documents []registry.Document
	for i, text := range texts {
		documents = append(documents, registry.Document{Name: fmt.Sprint(i), Text: []byte(text)})
	}
	c.now.Store(c.now.Load().Next(time.Unix(0, 0), documents))
}

// newRegistryService returns a service with templates and profiles.
func newRegistryService(t *testing.T, edit ...func(*Config, *Deps)) (*service, *catalogs) {
	t.Helper()
	c := &catalogs{}
	c.read(template("small", "active")+template("old", "deprecated")+template("new", "draft")+
		template("two", "active")+
		strings.Replace(template("two", "active"), "version: v1", "version: v2", 1)+
		strings.Replace(template("other", "active"), "uri: m", "uri: another", 1), profilesText)
	if refused := c.now.Load().Refused(); len(refused) != 1 { // two is active twice
		t.Fatal(refused)
	}
	return newService(t, append([]func(*Config, *Deps){func(_ *Config, d *Deps) {
		d.Catalogs = func() (*registry.Catalogs, error) { return c.now.Load(), c.unread }
	}}, edit...)...), c
}

// createAs creates a batch with these members, which replace the usual ones.
func (s *service) createAs(file, members string) answer {
	s.t.Helper()
	all := map[string]any{"input_file_id": file, "endpoint": "/v1/chat/completions",
		"completion_window": "24h"}
	if err := json.Unmarshal([]byte("{"+members+"}"), &all); err != nil {
		s.t.Fatal(err)
	}
	body, err := json.Marshal(all)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.post("/v1/batches", string(body))
}

// Each case is the members of a request, the parameter that is at fault and a part of the message.
func TestReferencesAreRefusedByName(t *testing.T) {
	s, _ := newRegistryService(t, func(_ *Config, d *Deps) { d.Keys = tenantKeys(t) })
	file := s.uploadAs(line("a"), as("a-user", ""))
	for _, c := range [][3]string{
		{`"aibrix":{"model_template":{"name":"smal"}}`, "aibrix.model_template.name",
			`There is no template "smal"; there are other, small, two.`},
		{`"aibrix":{"model_template":{}}`, "aibrix.model_template.name", "Missing required"},
		{`"aibrix":{"model_template":{"name":"small","version":"v9"}}`,
			"aibrix.model_template.version", `no version "v9"; it has v1 (active)`},
		{`"aibrix":{"model_template":{"name":"old","version":"v1"}}`,
			"aibrix.model_template.version", "is deprecated"},
		{`"aibrix":{"model_template":{"name":"old"}}`, "aibrix.model_template.name",
			"no active version; it has v1 (deprecated)"},
		{`"aibrix":{"model_template":{"name":"new","version":"v1"}}`,
			"aibrix.model_template.version", "only admins may use"},
		{`"aibrix":{"model_template":{"name":"two"}}`, "aibrix.model_template.version",
			"active in the versions v1, v2; name one"},
		{`"aibrix":{"model_template":{"name":"small","spec":{}}}`, "aibrix.model_template.spec",
			"can't bring a specification"},
		{`"aibrix":{"model_template_spec":{}}`, "aibrix.model_template_spec",
			"can't bring a specification"},
		{`"aibrix":{"model_template":{"name":"small","overrides":{"image":"x"}}}`,
			"aibrix.model_template.overrides.image", "only 'engine_args' can"},
		{`"aibrix":{"model_template":{"name":"small","overrides":{"nothing":1}}}`,
			"aibrix.model_template.overrides.nothing", "Unknown parameter"},
		{`"aibrix":{"model_template":{"name":"small","overrides":{"engine_args":{"model":"x"}}}}`,
			"aibrix.model_template.overrides.engine_args.model", "changes which model is served"},
		{`"aibrix":{"model_template":{"name":"small","overrides":{"engine_args":{"seed":1}}}}`,
			"aibrix.model_template.overrides.engine_args.seed", "known are"},
		{`"aibrix":{"model_template":{"name":"small","overrides":{"engine_args":
			{"max_num_seqs":0}}}}`, "aibrix.model_template.overrides.engine_args.max_num_seqs",
			"at least 1"},
		{`"aibrix":{"runtime":{}}`, "aibrix.runtime", "Unknown parameter"},
		{`"aibrix":[]`, "aibrix", "expected an object"},
		{`"aibrix":{"profile":{"name":"night"}}`, "aibrix.profile.name",
			`no profile "night"; there are day, fast, loose.`},
		{`"aibrix":{"profile":{"name":"theirs"}}`, "aibrix.profile.name", "no profile"},
		{`"aibrix":{"profile":{"name":"fast"}}`, "completion_window", "at most 1h"},
		{`"aibrix":{"profile":{"name":"day"}},"completion_window":"best_effort"`,
			"completion_window", "at most 24h"},
		{`"aibrix":{"profile":{"name":"day","overrides":{"storage":{}}}}`,
			"aibrix.profile.overrides.storage", "only 'scheduling' can"},
		{`"aibrix":{"profile":{"name":"day","overrides":{"scheduling":{"priority":"high"}}}}`,
			"aibrix.profile.overrides.scheduling.priority", "at most the profile's normal"},
		{`"aibrix":{"profile":{"name":"day","overrides":{"scheduling":{"max_concurrency":0}}}}`,
			"aibrix.profile.overrides.scheduling.max_concurrency", "from 1 to"},
		{`"aibrix":{"profile":{"name":"day","overrides":{"scheduling":
			{"completion_window":"best_effort"}}}}`,
			"aibrix.profile.overrides.scheduling.completion_window", "at most the profile's 24h"},
		{`"aibrix":{"profile":{"name":"day"}},"tidefill":{"priority":1}`, "tidefill.priority",
			"at most 0"},
		{`"tidefill":{"max_concurrency":257}`, "tidefill.max_concurrency", "at most 256"},
		{`"tidefill":{"retry":{"attempts":4}}`, "tidefill.retry.attempts", "at most 3"},
		{`"tidefill":{"registry":{"model_template":{"name":"smal"}}}`,
			"tidefill.registry.model_template.name", "no template"},
		{`"aibrix":{},"tidefill":{"registry":{}}`, "aibrix", "give one of them"},
		{`"service_tier":"scale"`, "service_tier", "use one of 'auto', 'default', 'flex'"},
		{`"service_tier":7`, "service_tier", "expected a string"},
		{`"endpoint":"/v1/embeddings","aibrix":{"model_template":{"name":"small"}}`, "endpoint",
			"supports '/v1/chat/completions'"},
		{`"aibrix":{"model_template":{"name":"` + strings.Repeat("x", 20_000) + `"}}`, "aibrix",
			"the limit is 16384"},
	} {
		all := map[string]any{"input_file_id": file, "endpoint": "/v1/chat/completions",
			"completion_window": "24h"}
		if err := json.Unmarshal([]byte("{"+c[0]+"}"), &all); err != nil {
			t.Fatal(c[0], err)
		}
		body, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		got := s.do("POST", "/v1/batches", strings.NewReader(string(body)), "Authorization",
			"Bearer a-user", "Content-Type", "application/json")
		var e struct {
			Error struct{ Message, Param, Type string }
		}
		if err := json.Unmarshal([]byte(got.body), &e); err != nil {
			t.Fatal(err)
		}
		if got.status != 400 || e.Error.Param != c[1] || !strings.Contains(e.Error.Message, c[2]) ||
			e.Error.Type != invalidRequest {
			t.Errorf("%s: got %d %s, want %s: %s", c[0], got.status, got.body, c[1], c[2])
		}
	}
}

// What a profile says is stored with the batch.
func TestProfilesSetOptions(t *testing.T) {
	s, _ := newRegistryService(t)
	file := s.upload(line("a"))
	stored := func(members string) store.Batch {
		t.Helper()
		b := s.createAs(file, members).ok()
		found, err := s.meta.Batch(t.Context(), "", b["id"].(string))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	fast := stored(`"service_tier":"flex","completion_window":"30m"`)
	want := store.Options{Priority: 50, RetryAttempts: 2, RetryOn: []int{500},
		GroupBy: "prefix", MaxConcurrency: 8, RequestTimeout: time.Minute,
		Backoff:     []time.Duration{time.Second, 7 * time.Second},
		Preemptible: true, NoSpot: true, Providers: []string{"a", "b"}, MaxResultBytes: 3e9,
		Storage: &store.Storage{Backend: "s3", Bucket: "results", Region: "r",
			Credentials: "s3-secret"}, MaxLines: 2, MaxInputBytes: 1e6}
	if diff := cmp.Diff(want, fast.Options); diff != "" {
		t.Errorf("options (-want +got): %s", diff)
	}
	if got := fast.Deadline.Sub(fast.CreatedAt); got != 30*time.Minute {
		t.Errorf("the batch has %v, want its own window of 30m", got)
	}
	lowered := stored(`"completion_window":"1h","aibrix":{"profile":{"name":"fast","overrides":
		{"scheduling":{"priority":"low","max_concurrency":4}}}},"tidefill":{"max_concurrency":3}`)
	if o := lowered.Options; o.Priority != -50 || o.MaxConcurrency != 3 {
		t.Errorf("with overrides: priority %d, concurrency %d, want -50, 3", o.Priority,
			o.MaxConcurrency)
	}
	shorter := stored(`"aibrix":{"profile":{"name":"loose","overrides":{"scheduling":
		{"completion_window":"4h"}}}}`)
	if got := shorter.Deadline.Sub(shorter.CreatedAt); got != 4*time.Hour ||
		shorter.Resolved.Window != "4h" || shorter.Options.NoSpot {
		t.Errorf("an override of the window: %v, %q, no spot %v", got, shorter.Resolved.Window,
			shorter.Options.NoSpot)
	}
	for members, want := range map[string]time.Duration{
		`"aibrix":{"profile":{"name":"loose"}}`: 24 * time.Hour, // the request's own window
		`"aibrix":{"profile":{"name":"loose","overrides":{"scheduling":
			{"completion_window":"best_effort"}}}}`: 0,
		`"completion_window":"best_effort","aibrix":{"profile":{"name":"loose"}}`: 0,
		`"completion_window":"2h","aibrix":{"profile":{"name":"loose","overrides":{"scheduling":
			{"completion_window":"4h"}}}}`: 2 * time.Hour,
		`"aibrix":{"profile":{"name":"fast","overrides":{"scheduling":
			{"completion_window":"1h"}}}}`: time.Hour,
	} {
		b := stored(members)
		if got := b.Deadline; want == 0 && !got.IsZero() ||
			want > 0 && got.Sub(b.CreatedAt) != want {
			t.Errorf("%s: created %v, deadline %v, want %v after", members, b.CreatedAt, got, want)
		}
	}
	standard := stored(``)
	if standard.Resolved.Profile != "day" || standard.Options.MaxConcurrency != 256 {
		t.Errorf("the default profile: %+v", standard.Resolved)
	}
}

// Input above a quota, and lines of another model, fail the batch, and say which limit it is.
func TestQuotasAndModelsFailTheBatch(t *testing.T) {
	s, _ := newRegistryService(t)
	for members, want := range map[string][2]string{
		`"completion_window":"1h","aibrix":{"profile":{"name":"fast"}}`: {"too_many_tasks",
			"quota.max_requests_per_batch of profile fast is 2"},
		`"aibrix":{"model_template":{"name":"other"}}`: {"model_not_found",
			"template other@v1 serves the model 'another', not 'm'"},
	} {
		b := s.createAs(s.upload(line("a")+line("b")+line("c")), members).ok()
		first := b["errors"].(map[string]any)["data"].([]any)[0].(map[string]any)
		if message := first["message"].(string); b["status"] != "failed" ||
			first["code"] != want[0] || !strings.Contains(message, want[1]) {
			t.Errorf("%s: %v %v", members, b["status"], first)
		}
	}
	large := `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"m",` +
		`"messages":[{"role":"user","content":"` + strings.Repeat("x", 1_000_000) + `"}]}}` + "\n"
	b := s.createAs(s.upload(large),
		`"completion_window":"1h","aibrix":{"profile":{"name":"fast"}}`).ok()
	first := b["errors"].(map[string]any)["data"].([]any)[0].(map[string]any)
	if b["status"] != "failed" || first["code"] != codeInputTooLarge {
		t.Errorf("a large input: %v %v", b["status"], first)
	}
}

// Users see names and versions, admins more; what a batch was created with stays when the registry
// changes, and a retry is judged by it.
func TestResolutionIsShownAndStays(t *testing.T) {
	s, c := newRegistryService(t, func(_ *Config, d *Deps) { d.Keys = tenantKeys(t) })
	asked := `{"model_template":{"name":"small","overrides":{"engine_args":{"max_num_seqs":8}}}}`
	file := s.uploadAs(line("a"), as("a-user", ""))
	create := func() answer {
		return s.do("POST", "/v1/batches", strings.NewReader(`{"input_file_id":"`+file+
			`","endpoint":"/v1/chat/completions","completion_window":"24h","aibrix":`+asked+`}`),
			"Authorization", "Bearer a-user", "Content-Type", "application/json")
	}
	id := create().ok()["id"].(string)
	c.read(template("small", "deprecated"), "items: []")
	get := func(header []string) map[string]any {
		return s.get("/v1/batches/"+id, header...).ok()["_aibrix"].(map[string]any)
	}
	user := get(as("a-user", ""))
	want := map[string]any{
		"resolved_template": map[string]any{"name": "small", "version": "v1"},
		"resolved_profile":  "day", "priority": "normal", "deployment_mode": "shared",
		"service_tier": nil, "effective_completion_window": "24h",
		"applied_overrides": map[string]any{"engine_args": map[string]any{"max_num_seqs": 8.0}},
		"warnings": []any{"model_template.overrides.engine_args have no effect: the deployment " +
			"of template small@v1 is shared."},
	}
	if diff := cmp.Diff(want, user); diff != "" {
		t.Errorf("users see (-want +got): %s", diff)
	}
	admin := get(as("ops-admin", "a"))
	if admin["image"] != "secret/image:1" ||
		admin["engine_args"].(map[string]any)["max_num_seqs"] != 8.0 ||
		strings.Contains(fmt.Sprint(admin), "TOPSECRET") {
		t.Errorf("admins see %v", admin)
	}
	if got := create(); got.status != 400 || !strings.Contains(got.body, "no active version") {
		t.Errorf("a deprecated template: %d %s", got.status, got.body)
	}
}

// While the registry is not known, nothing is created.
func TestUnreadRegistry(t *testing.T) {
	s, c := newRegistryService(t)
	c.unread = errors.New("no API server")
	got := s.createAs(s.upload(line("a")), "")
	if got.status != 503 || !strings.Contains(got.body, "registry_unread") ||
		strings.Contains(got.body, "no API server") { // which is for the log
		t.Errorf("got %d %s", got.status, got.body)
	}
}

// Tenants see names that they may use, and nothing that only admins see.
func TestRegistryIsListed(t *testing.T) {
	s, _ := newRegistryService(t, func(_ *Config, d *Deps) { d.Keys = tenantKeys(t) })
	got := s.get("/v1/registry", as("a-user", "")...)
	for _, hidden := range []string{"secret", "theirs", "new", "bucket"} {
		if strings.Contains(got.body, hidden) {
			t.Errorf("a tenant sees %s: %s", hidden, got.body)
		}
	}
	want := map[string]any{"name": "fast", "description": "", "completion_window": "1h",
		"priority": "high", "max_requests_per_batch": 2.0, "service_tier": "flex",
		"overridable_scheduling": []any{"completion_window", "priority", "provider_preference",
			"allow_preempt", "allow_spot", "max_concurrency", "request_timeout_seconds",
			"retry_policy"}}
	if diff := cmp.Diff(want, got.ok()["profiles"].([]any)[1]); diff != "" {
		t.Errorf("fast (-want +got): %s", diff)
	}
	if got.ok()["default_profile"] != "day" {
		t.Errorf("the default is %v", got.ok()["default_profile"])
	}
	if admin := s.get("/v1/registry", as("ops-admin", "a")...); !strings.Contains(admin.body,
		`"new"`) {
		t.Errorf("an admin sees no draft: %s", admin.body)
	}
}

// A change of the priority stays within the profile, as that of a new batch does.
func TestChangedPriorityStaysWithinProfile(t *testing.T) {
	s, _ := newRegistryService(t)
	id := s.createAs(s.upload(line("a")), `"tidefill":{"registry":{"profile":{"name":"day"}}}`).
		ok()["id"].(string)
	path := "/v1/batches/" + id
	s.post(path, `{"tidefill":{"priority":1}}`).refused(400, "tidefill.priority", "invalid_value",
		"profile day permits at most 0, its priority normal")
	if b := s.post(path, `{"tidefill":{"priority":-1}}`).ok(); b["tidefill"].(map[string]any)["priority"] != -1.0 {
		t.Errorf("got %v, want the priority -1", b["tidefill"])
	}
}

// A retry may name another profile, also if the batch named its own in the `tidefill` object.
func TestReferencesOfRetriesReplaceThose(t *testing.T) {
	s, _ := newRegistryService(t, diskJournals(t))
	id := s.createAs(s.upload(line("a")),
		`"tidefill":{"priority":-1,"registry":{"profile":{"name":"day"}}}`).ok()["id"].(string)
	s.end(id, []string{`"a"`})
	for body, want := range map[string]string{"": "day",
		`{"aibrix":{"profile":{"name":"loose"}}}`: "loose"} {
		b := s.retry(id, body).ok()
		if got := b["_aibrix"].(map[string]any)["resolved_profile"]; got != want ||
			b["tidefill"].(map[string]any)["priority"] != -1.0 {
			t.Errorf("%s: profile %v, %v", body, got, b["tidefill"])
		}
	}
	s.retry(id, `{"aibrix":{"profile":{"name":"loose"}},"tidefill":{"registry":{"profile":{"name":`+
		`"day"}}}}`).refused(400, "aibrix", "invalid_value")
}
