package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// registryDir is a directory of templates and profiles that a test changes.
type registryDir struct {
	t    *testing.T
	path string
}

func newRegistryDir(t *testing.T) *registryDir {
	r := &registryDir{t, t.TempDir()}
	r.write("profiles.yaml", `
default: day
items:
- name: day
- name: quick
  spec:
    scheduling: {completion_window: 1h, priority: high, allow_preempt: true}
    openai_service_tier_alias: flex
- name: tiny
  spec: {quota: {max_requests_per_batch: 1}}
`)
	return r
}

// write replaces a file in one step.
func (r *registryDir) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.path, name)
	if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600),
		os.Rename(path+".new", path)); err != nil {
		r.t.Fatal(err)
	}
}

// template returns a template of the model m.
func templateOf(name, status, mode, provider string) string {
	return fmt.Sprintf(`
- name: %s
  status: %s
  spec:
    engine: {type: vllm, version: "1", image: "vllm/vllm-openai:v1"}
    model_source: {type: local, uri: m}
    accelerator: {type: H100, count: 1}
    provider_config: %s
    supported_endpoints: [/v1/chat/completions]
    deployment_mode: %s
`, name, status, provider, mode)
}

// awaitBatch waits until a batch read by the SDK is as wanted.
func awaitBatch(
	t *testing.T, c *openai.Client, id, what string, is func(*openai.Batch) bool,
) *openai.Batch {
	t.Helper()
	var b *openai.Batch
	await(t, 20*time.Second, what, func() bool {
		var err error
		if b, err = c.Batches.Get(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		return is(b)
	})
	return b
}

func naming(template string) option.RequestOption {
	return option.WithJSONSet("aibrix.model_template.name", template)
}

// waitingOf returns why no lines of a batch start.
func waitingOf(b *openai.Batch) string {
	var of struct {
		Tidefill struct{ Waiting string }
	}
	_ = json.Unmarshal([]byte(b.RawJSON()), &of)
	return of.Tidefill.Waiting
}

// An admin deprecates a template while a batch of it runs: it ends, also over a kill, and the next
// one is refused by name. Lines go where the template says.
func TestTemplatesDecideWhereLinesGo(t *testing.T) {
	t.Parallel()
	pool, elsewhere := NewStub(t, "m"), NewStub(t, "m")
	pool.MinDelay, pool.MaxDelay = 20*time.Millisecond, 40*time.Millisecond
	dir := newRegistryDir(t)
	external := "{type: external, base_url: \"" + elsewhere.URL + "\", requests_per_minute: 6000}"
	templates := func(status string) {
		dir.write("templates.yaml", templateOf("small", status, "shared", "{type: k8s}")+
			templateOf("own", status, "dedicated", "{type: k8s}")+
			templateOf("rented", status, "external", external))
	}
	templates("active")
	cfg := filepath.Join(t.TempDir(), "tidefill.yaml")
	configure := func(pools string) {
		t.Helper()
		if err := os.WriteFile(cfg, []byte(pools), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure(fmt.Sprintf("upstreams: [{url: %q}]\n", pool.URL))
	d := NewDaemon(t, Options{Args: []string{"--config", cfg},
		Set: []string{"registry.dir=" + dir.path, "flowcontrol.policy=unlimited"}})
	c := sdk(d, ownKey, option.WithMaxRetries(0))
	lines := NewLines("registry", "m", 60)
	file := uploadSDK(t, c, lines.Content)
	create := func(template string, options ...option.RequestOption) (*openai.Batch, error) {
		return c.Batches.New(t.Context(), newBatch(file.ID),
			append(options, naming(template))...)
	}
	must := func(template string) *openai.Batch {
		t.Helper()
		b, err := create(template)
		if err != nil {
			t.Fatalf("%s: %v", template, err)
		}
		return b
	}
	own := must("own")
	awaitBatch(t, c, own.ID, "the batch without a deployment says so", func(b *openai.Batch) bool {
		return strings.HasPrefix(waitingOf(b), "no_deployment: ")
	})
	small, rented := must("small"), must("rented")
	templates("deprecated")
	await(t, 10*time.Second, "deprecated templates are refused by name", func() bool {
		_, err := create("small", option.WithQuery("dry_run", "true"))
		refused := (*openai.Error)(nil)
		return errors.As(err, &refused) && refused.StatusCode == 400 &&
			refused.Param == "aibrix.model_template.name" &&
			strings.Contains(refused.Message, "v1.0.0 (deprecated)")
	})
	d.Kill()
	dir.write("templates.yaml", "[]")
	d.Restart()
	for _, b := range []*openai.Batch{small, rented} {
		if ended := awaitSDK(t, c, b.ID); ended.RequestCounts.Completed != 60 {
			t.Errorf("batch %s ended as %s with %+v", b.ID, ended.Status, ended.RequestCounts)
		}
	}
	if n := len(elsewhere.Ledger()); n != 60 {
		t.Errorf("%d lines were sent to the external server, want 60", n)
	}
	if n := pool.Requests(); n < 60 || n > 60+20 {
		t.Errorf("%d requests came to the pool, want the 60 lines of one batch", n)
	}
	if b := awaitBatch(t, c, own.ID, "it waits still", func(*openai.Batch) bool { return true }); b.
		RequestCounts.Completed > 0 {
		t.Errorf("the batch without a deployment has %d answers", b.RequestCounts.Completed)
	}
	// A pool binds the template that the batch was created with, though it is gone.
	configure(fmt.Sprintf("upstreams: [{url: %q, pool: p}]\n"+
		"pools: [{name: p, models: [m], max: 1, templates: [own@v1.0.0]}]\n", pool.URL))
	if ended := awaitSDK(t, c, own.ID); ended.RequestCounts.Completed != 60 {
		t.Errorf("the bound batch ended as %s with %+v", ended.Status, ended.RequestCounts)
	}
}

// The official Node SDK names a template and a profile, and reports each mistake by its parameter.
func TestNodeSDKNamesTemplates(t *testing.T) {
	t.Parallel()
	stub := NewStub(t, "m")
	dir := newRegistryDir(t)
	dir.write("templates.yaml", templateOf("small", "active", "shared", "{type: k8s}")+
		templateOf("old", "deprecated", "shared", "{type: k8s}"))
	d := NewDaemon(t, Options{Upstreams: []string{stub.URL}, Keys: "own=" + ownKey,
		Set: []string{"registry.dir=" + dir.path, "flowcontrol.policy=unlimited"}})
	cases := []struct{ members, param string }{
		{`{"aibrix":{"model_template":{"name":"smal"}}}`, "aibrix.model_template.name"},
		{`{"aibrix":{"model_template":{"name":"old","version":"v1.0.0"}}}`,
			"aibrix.model_template.version"},
		{`{"aibrix":{"model_template":{"name":"small","spec":{}}}}`, "aibrix.model_template.spec"},
		{`{"aibrix":{"model_template":{"name":"small","overrides":{"image":"x"}}}}`,
			"aibrix.model_template.overrides.image"},
		{`{"aibrix":{"model_template":{"name":"small","overrides":{"engine_args":
			{"trust_remote_code":true}}}}}`,
			"aibrix.model_template.overrides.engine_args.trust_remote_code"},
		{`{"aibrix":{"profile":{"name":"quick"}}}`, "completion_window"},
		{`{"service_tier":"scale"}`, "service_tier"},
		{`{"aibrix":{"job_id":"x"}}`, "aibrix.job_id"},
	}
	var members []string
	want := []map[string]any{}
	for _, of := range cases {
		members = append(members, of.members)
		code := "invalid_value"
		if of.param == "aibrix.job_id" {
			code = "unknown_parameter"
		}
		want = append(want, map[string]any{"class": "BadRequestError", "param": of.param,
			"code": code, "type": "invalid_request_error"})
	}
	var got struct {
		Resolved map[string]any
		Status   string
		Counts   struct{ Completed int }
		Errors   []map[string]any
		Sent     int
	}
	runNode(t, d, &got, "registry.mjs", writeInput(t, "in.jsonl", NewLines("node", "m", 9).Content),
		"["+strings.Join(members, ",")+"]")
	if diff := cmp.Diff(want, got.Errors); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if got.Status != "completed" || got.Counts.Completed != 9 || got.Sent != len(cases) {
		t.Errorf("the batch is %s with %+v; %d requests were sent", got.Status, got.Counts,
			got.Sent)
	}
	delete(got.Resolved, "warnings")
	if diff := cmp.Diff(map[string]any{
		"resolved_template": map[string]any{"name": "small", "version": "v1.0.0"},
		"resolved_profile":  "day", "priority": "normal", "deployment_mode": "shared",
		"service_tier": nil, "effective_completion_window": "24h",
		"applied_overrides": map[string]any{"engine_args": map[string]any{"max_num_seqs": 8.0},
			"scheduling": map[string]any{"max_concurrency": 2.0}},
	}, got.Resolved); diff != "" {
		t.Errorf("_aibrix (-want +got):\n%s", diff)
	}
}

// A service tier selects a profile, whose quota fails a batch that is above it.
func TestServiceTierAndQuota(t *testing.T) {
	t.Parallel()
	stub := NewStub(t, "m")
	dir := newRegistryDir(t)
	d := NewDaemon(t, Options{Upstreams: []string{stub.URL},
		Set: []string{"registry.dir=" + dir.path}})
	c := sdk(d, ownKey, option.WithMaxRetries(0))
	file := uploadSDK(t, c, NewLines("tier", "m", 2).Content)
	params := newBatch(file.ID)
	params.CompletionWindow = "30m"
	b, err := c.Batches.New(t.Context(), params, option.WithJSONSet("service_tier", "flex"))
	if err != nil {
		t.Fatal(err)
	}
	if got := b.JSON.ExtraFields["_aibrix"].Raw(); !strings.Contains(got,
		`"resolved_profile":"quick"`) || b.ExpiresAt-b.CreatedAt != 1800 {
		t.Errorf("tier flex: %s, %d seconds", got, b.ExpiresAt-b.CreatedAt)
	}
	b, err = c.Batches.New(t.Context(), newBatch(file.ID),
		option.WithJSONSet("aibrix.profile.name", "tiny"))
	if err != nil || b.Status != openai.BatchStatusFailed || !strings.Contains(
		b.Errors.Data[0].Message, "quota.max_requests_per_batch of profile tiny is 1") {
		t.Errorf("above the quota: %v, %+v", err, b)
	}
}
