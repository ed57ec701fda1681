package registry_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/registry"
)

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// template returns a document with one template, in which edits are made, each OLD=>NEW.
func template(edits ...string) string {
	text := `- name: llama
  version: v1
  status: active
  spec:
    engine: {type: vllm, version: "0.11.0", image: "vllm-openai:v0.11.0", serve_args: [--port=8000]}
    model_source: {type: huggingface, uri: org/model, revision: main, auth_secret_ref: hf-token}
    accelerator: {type: H100-SXM, count: 4, interconnect: nvlink, vram_gb: 80}
    parallelism: {tp: 4}
    engine_args: {max_num_seqs: 256, enable_prefix_caching: true, kv_sharing_fast_prefill: true}
    quantization: {weight: fp8, kv_cache: fp8_e4m3}
    provider_config: {type: k8s, namespace: batch}
    supported_endpoints: [/v1/chat/completions]
    deployment_mode: dedicated
`
	return edit(text, edits...)
}

func profiles(edits ...string) string {
	text := `default: day
items:
- name: day
  spec:
    storage: {backend: s3, bucket: b, region: r, credentials_secret_ref: s}
    scheduling:
      completion_window: 24h
      priority: normal
      max_concurrency: 256
      retry_policy: {max_retries: 3, backoff_seconds: [5, 30], retryable_errors: [429, 500]}
    quota: {max_requests_per_batch: 50000, max_input_size_mb: 200, max_output_size_gb: 10}
    openai_service_tier_alias: flex
`
	return edit(text, edits...)
}

func edit(text string, edits ...string) string {
	for _, e := range edits {
		old, next, _ := strings.Cut(e, "=>")
		if !strings.Contains(text, old) {
			panic("there is no " + old)
		}
		text = strings.Replace(text, old, next, 1)
	}
	return text
}

// rows returns the groups of rows of a file, between empty ones.
func rows(t *testing.T, file string) (groups [][]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	for group := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		groups = append(groups, strings.Split(group, "\n"))
	}
	return groups
}

func read(before *registry.Catalogs, texts ...string) *registry.Catalogs {
	var documents []registry.Document
	for i, text := range texts {
		documents = append(documents, registry.Document{Name: fmt.Sprint("d", i),
			Text: []byte(text)})
	}
	return before.Next(noon, documents)
}

func refused(c *registry.Catalogs) (all []string) {
	for _, r := range c.Refused() {
		all = append(all, r.String())
	}
	return all
}

func TestGoodDocuments(t *testing.T) {
	c := read(nil, template(), profiles())
	if all := refused(c); len(all) > 0 {
		t.Errorf("refused: %q", all)
	}
	e, err := c.Template(registry.Viewer{}, "llama", "")
	if err != nil || e.Item.Version != "v1" || *e.Item.Spec.EngineArgs.MaxNumSeqs != 256 ||
		e.Item.Spec.EngineArgs.Extra["kv_sharing_fast_prefill"] != true ||
		e.Item.Spec.Engine.ReadyTimeoutSeconds != 600 || e.Item.Spec.Parallelism.PP != 1 ||
		e.Item.Spec.ProviderConfig.Extra["namespace"] != "batch" || len(e.Warnings) > 0 {
		t.Errorf("%+v, %v", e, err)
	}
	p, err := c.Profile(registry.Viewer{}, "day")
	if s := p.Item.Spec.Scheduling; err != nil || c.Standard() != "day" ||
		c.ByTier("flex") != "day" || s.RequestTimeoutSeconds != 600 ||
		s.RetryPolicy.Backoff(2) != 5*time.Second ||
		s.RetryPolicy.Backoff(9) != 30*time.Second || s.Window() != 24*time.Hour {
		t.Errorf("%+v, %v", p, err)
	}
	if c := read(nil, ""); len(c.Templates())+len(c.Refused()) > 0 {
		t.Errorf("an empty document has %v, %q", c.Templates(), refused(c))
	}
}

// Each row breaks one rule of a document. The message has the row, the path, and what to do.
func TestBadTemplates(t *testing.T) {
	for _, row := range rows(t, "bad-templates.txt") {
		edits, want := row[0], row[1]
		c := read(nil, template(edits))
		if diff := cmp.Diff([]string{want}, refused(c)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", edits, diff)
		}
		if len(c.Templates()) > 0 {
			t.Errorf("%s: a faulty template is in force", edits)
		}
	}
	if c := read(nil, template("tp: 4=>tp: 4, ep: 2, experts_share_ranks: true")); len(
		c.Refused()) > 0 {
		t.Errorf("with shared ranks: %q", refused(c))
	}
}

func TestBadProfiles(t *testing.T) {
	for _, row := range rows(t, "bad-profiles.txt") {
		edits, want := row[0], row[1]
		c := read(nil, profiles(edits))
		if got := refused(c); !slices.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", edits, got, want)
		}
	}
}

// Storages that can't be used as documents have them are warned of.
func TestStoragesWarn(t *testing.T) {
	for backend, want := range map[string]string{"s3": "", "gcs": "HMAC keys access-key-id",
		"minio": "endpoint_url: minio needs it", "local": "must be an absolute path"} {
		p, err := read(nil, profiles("backend: s3=>backend: "+backend)).Profile(registry.Viewer{},
			"day")
		got := strings.Join(p.Warnings, "\n")
		if err != nil || !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%s: %v, got warnings %q, want %q", backend, err, got, want)
		}
	}
}

// A typo disables nothing: the faulty item stays as it was, and the others follow their document.
func TestFaultyItemsStayAsTheyWere(t *testing.T) {
	other := strings.Replace(template(), "name: llama", "name: qwen", 1)
	c := read(nil, template()+other, profiles())
	faulty := template("count: 4=>count: 5")
	next := read(c, faulty+edit(other, "max_num_seqs: 256=>max_num_seqs: 512"), profiles())
	llama, err1 := next.Template(registry.Viewer{}, "llama", "")
	qwen, err2 := next.Template(registry.Viewer{}, "qwen", "")
	if err1 != nil || err2 != nil || llama.Item.Spec.Accelerator.Count != 4 || !llama.Kept ||
		*qwen.Item.Spec.EngineArgs.MaxNumSeqs != 512 {
		t.Errorf("%+v, %v; %+v, %v", llama, err1, qwen, err2)
	}
	if all := next.Refused(); len(all) != 1 || !all[0].Kept || all[0].Key.Name != "llama" {
		t.Errorf("refused: %q", refused(next))
	}
	// The time of a fault is that of its first sight.
	again := next.Next(noon.Add(time.Hour), []registry.Document{{Name: "d0",
		Text: []byte(faulty + other)}, {Name: "d1", Text: []byte(profiles())}})
	if all := again.Refused(); len(all) != 1 || !all[0].Since.Equal(noon) {
		t.Errorf("an hour later: %+v", all)
	}
	// A document that can't be read changes nothing.
	for _, text := range []string{"- name: [", "just text", "a: 1", "- 7\n- {name: x}\n" + "b: ]"} {
		next = read(c, text, "default: [")
		if len(next.Templates()) != 2 || len(next.Profiles()) != 1 || next.Standard() != "day" ||
			len(next.Refused()) < 2 {
			t.Errorf("%q: %d templates, %d profiles, refused %q", text, len(next.Templates()),
				len(next.Profiles()), refused(next))
		}
	}
	// One that is gone takes its items with it.
	if next = read(c); len(next.Templates())+len(next.Profiles()) > 0 || next.Standard() != "" {
		t.Error("items outlast their document")
	}
}

// The feed shows the first fault of an item, a check all of them.
func TestEveryFaultOfAnItemIsKept(t *testing.T) {
	good := read(nil, template())
	c := read(good, template("status: active=>status: on", "count: 4=>count: 0", "fp8,=>fp9,"))
	want := []string{
		"d0:3: template llama@v1: status: is \"on\", must be one of active, deprecated, draft",
		"d0:7: template llama@v1: spec.accelerator.count: is 0, must be at least 1",
		"d0:10: template llama@v1: spec.quantization.weight: is \"fp9\", must be one of fp8, " +
			"awq, gptq, int8, bf16, fp16",
	}
	var got []string
	for _, f := range c.Faults() {
		got = append(got, f.String())
		if !f.Kept {
			t.Errorf("the last good version does not stay: %+v", f)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{want[0] + " (and 2 more faults)"}, refused(c)); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}

func TestRecognizes(t *testing.T) {
	for text, want := range map[string]bool{template(): true, profiles(): true, "default: x": true,
		"[]": true, "---\na: 1\n---\n- x": true, "": false, "a: 1": false, "text": false,
		"- [": false,
		"kind: ConfigMap\ndata: {templates.yaml: '- x'}": true,
		"kind: ConfigMap\ndata: {other.yaml: '- x'}":     false} {
		if got := registry.Recognizes([]byte(text)); got != want {
			t.Errorf("%q: got %v", text, got)
		}
	}
}

func TestVersions(t *testing.T) {
	v2 := template("version: v1=>version: v2")
	c := read(nil, template()+v2+template("version: v1=>version: v3", "active=>deprecated")+
		template("version: v1=>version: v4", "active=>draft"))
	for _, row := range rows(t, "versions.txt") {
		version, who, _ := strings.Cut(strings.TrimPrefix(row[0], "none"), " ")
		got := "ok"
		_, err := c.Template(registry.Viewer{Admin: who == "admin"}, "llama", version)
		if u, is := err.(*registry.Unresolved); is {
			got = u.Field + ": " + u.Text
		}
		if got != row[1] {
			t.Errorf("%s: got %q", row[0], got)
		}
	}
	if _, err := c.Template(registry.Viewer{}, "lama", ""); err == nil ||
		err.Error() != `There is no template "lama"; there are llama.` {
		t.Errorf("an unknown name: %v", err)
	}
	if all := refused(c); len(all) != 1 ||
		!strings.Contains(all[0], "is active in the versions v1, v2") {
		t.Errorf("refused: %q", all)
	}
	twice := read(nil, template(), template())
	want := "d1:1: template llama@v1: is in d0 already, which counts; remove one"
	if got := refused(twice); len(got) != 1 || got[0] != want {
		t.Errorf("twice: %q", refused(twice))
	}
}

// What others may not see does not exist for them.
func TestVisibility(t *testing.T) {
	c := read(nil, template("status: active=>visible_to: [a]"),
		profiles("- name: day=>- name: day\n  visible_to: [a]"))
	for tenant, sees := range map[string]bool{"a": true, "b": false} {
		_, err1 := c.Template(registry.Viewer{Tenant: tenant}, "llama", "")
		_, err2 := c.Profile(registry.Viewer{Tenant: tenant}, "day")
		if (err1 == nil) != sees || (err2 == nil) != sees {
			t.Errorf("%s: %v, %v", tenant, err1, err2)
		}
		if !sees && strings.Contains(err1.Error()+err2.Error(), "are") {
			t.Errorf("%s: %v, %v", tenant, err1, err2)
		}
	}
	if _, err := c.Template(registry.Viewer{Tenant: "b", Admin: true}, "llama", ""); err != nil {
		t.Error(err)
	}
}

// Manifests of ConfigMaps have the rows of their file.
func TestConfigMaps(t *testing.T) {
	indent := func(text string) string {
		return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
	}
	manifest := "# samples\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n" +
		"  other.txt: hello\n  templates.yaml: |\n" + indent(template("count: 4=>count: 5")) +
		"  profiles.yaml: |\n" + indent(profiles("priority: normal=>priority: urgent"))
	c := read(nil, "---\n"+template("name: llama=>name: outside")+"---\n"+manifest)
	want := []string{
		"d0:2: has a second list of templates, which is not read; join it with the first",
		"d0:30: template llama@v1: spec.parallelism: tp*pp*dp*ep is 4, must be equal to " +
			"accelerator.count, which is 5; where experts use the ranks of the others, set " +
			"experts_share_ranks",
		"d0:44: profile day: spec.scheduling.priority: is \"urgent\", must be one of high, " +
			"normal, low",
		"d0:37: default: there is no profile \"day\" in force",
	}
	if diff := cmp.Diff(want, refused(c)); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}

// An entry of a ConfigMap has items of the kind that its key says. What has another shape is
// reported, and what was in force stays.
func TestEntriesHaveAKind(t *testing.T) {
	entry := func(kind registry.Kind, text string) registry.Document {
		return registry.Document{Name: kind.DataKey(), Kind: kind, Text: []byte(text)}
	}
	good := []registry.Document{entry(registry.Templates, template()),
		entry(registry.Profiles, profiles())}
	var none *registry.Catalogs
	c := none.Next(noon, good)
	if len(c.Templates()) != 1 || c.Standard() != "day" || len(c.Refused()) > 0 {
		t.Fatalf("%d templates, default %q, refused %q", len(c.Templates()), c.Standard(),
			refused(c))
	}
	for _, row := range []struct {
		kind       registry.Kind
		text, want string
	}{
		{registry.Profiles, template(),
			"profiles.yaml:1: must be a table with the keys default and items"},
		{registry.Templates, profiles(), "templates.yaml:1: must be a list of templates"},
		{registry.Templates, template() + "---\n" + template("name: llama=>name: qwen"),
			"templates.yaml:15: is a second document, which is not read; join it with the first"},
		{registry.Profiles, "kind: ConfigMap\ndata: {}", "profiles.yaml:1: kind: unknown key; " +
			"known are default, items"},
	} {
		documents := slices.Clone(good)
		i := slices.IndexFunc(documents, func(d registry.Document) bool {
			return d.Kind == row.kind
		})
		documents[i] = entry(row.kind, row.text)
		next := c.Next(noon, documents)
		if diff := cmp.Diff([]string{row.want}, refused(next)); diff != "" {
			t.Errorf("refused (-want +got):\n%s", diff)
		}
		if len(next.Templates()) != 1 || next.Standard() != "day" || !next.Refused()[0].Kept {
			t.Errorf("%s: %d templates, default %q, kept %v", row.want, len(next.Templates()),
				next.Standard(), next.Refused()[0].Kept)
		}
	}
	if c = c.Next(noon, []registry.Document{entry(registry.Templates, "")}); len(
		c.Templates())+len(c.Refused()) > 0 {
		t.Errorf("an empty entry has %v, %q", c.Templates(), refused(c))
	}
}

func TestOverrides(t *testing.T) {
	bounded := template("engine_args:=>overrides_allowed: {engine_args: {max_num_seqs: " +
		"{min: 16, max: 512}, seed: {}}}\n    engine_args:")
	for _, row := range rows(t, "overrides.txt") {
		document, argsText, want := template(), row[1], strings.TrimSuffix(row[2], "ok")
		if row[0] == "bounded" {
			document = bounded
		}
		c := read(nil, document)
		e, err := c.Template(registry.Viewer{}, "llama", "")
		if err != nil {
			t.Fatal(err, refused(c))
		}
		var args map[string]json.RawMessage
		if err := json.Unmarshal([]byte(argsText), &args); err != nil {
			t.Fatal(err)
		}
		before := fmt.Sprintf("%+v", e.Item.Spec.EngineArgs.Extra)
		changed, faults := e.Item.Spec.Override(args)
		got := ""
		if len(faults) > 0 {
			got = faults[0].Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", argsText, got, want)
		}
		if _, has := args["max_num_seqs"]; got == "" && has &&
			fmt.Sprint(*changed.EngineArgs.MaxNumSeqs) != string(args["max_num_seqs"]) {
			t.Errorf("%s: max_num_seqs is %d", argsText, *changed.EngineArgs.MaxNumSeqs)
		}
		if after := fmt.Sprintf("%+v", e.Item.Spec.EngineArgs.Extra); before != after ||
			*e.Item.Spec.EngineArgs.MaxNumSeqs != 256 {
			t.Errorf("%s changed the template: %s", argsText, after)
		}
	}
}

// Whatever a document is, reading it ends soon, and what was in force stays valid.
func FuzzDocuments(f *testing.F) {
	f.Add(template(), profiles())
	f.Add("a: &a [*a]", "- &a [x, x]\n- &b [*a, *a]\n- [*b, *b]")
	f.Add("kind: ConfigMap\ndata: {templates.yaml: 7, profiles.yaml: [1]}", "default: {}\nitems: 3")
	f.Add("- name: {a: b}\n- [1]\n- null\n- spec: 7", "items:\n- name: 3\n  spec: {scheduling: []}")
	f.Add(useCases(), manifest()+"---\n"+short("a", "m", "p")+"---\n"+short("b", "m", ""))
	f.Add("kind: UseCaseSet\nspec: {useCases: [{modelName: a, targetModels: [{weight: -1}]}]}",
		"- useCases: &a [*a]\n- {kind: UseCaseSet, metadata: [], spec: {poolRef: 7}}")
	f.Add("kind: Pool\nmetadata: {name: p}\nspec: {models: [m], endpoints: ['http://a']}",
		"kind: InferenceObjective\nmetadata: {name: o}\nspec: {priority: -1}")
	f.Fuzz(func(t *testing.T, a, b string) {
		c := read(read(nil, template(), profiles(), useCases()), a, b)
		for _, e := range c.Pools() {
			if err := e.Item.Pool().Validate(); err != nil {
				t.Errorf("%v is in force: %v", e.Item.Key(), err)
			}
		}
		for _, e := range c.UseCases() {
			if faults := e.Item.Validate(); len(faults) > 0 {
				t.Errorf("%v is in force: %v", e.Item.Key(), faults)
			}
			for _, u := range e.Item.UseCases() {
				m := c.UseCase("a", u.Model, func(string) bool { return true })
				if len(u.Tenants) == 0 && len(m.UseCases) == 0 {
					t.Errorf("%q is in force and has no use case", u.Model)
				}
			}
		}
		for _, e := range c.Templates() {
			if faults := e.Item.Validate(); len(faults) > 0 {
				t.Errorf("%v is in force: %v", e.Item.Key(), faults)
			}
		}
		for _, e := range c.Profiles() {
			if faults := e.Item.Validate(); len(faults) > 0 {
				t.Errorf("%v is in force: %v", e.Item.Key(), faults)
			}
		}
		for _, r := range c.Refused() {
			if r.Text == "" || r.Document == "" {
				t.Errorf("a refusal says nothing: %+v", r)
			}
		}
	})
}

func BenchmarkItems(b *testing.B) {
	var text strings.Builder
	for i := range 10_000 {
		text.WriteString(template(fmt.Sprintf("name: llama=>name: t%d", i)))
	}
	documents := []registry.Document{{Name: "d", Text: []byte(text.String())}}
	var c *registry.Catalogs
	b.Run("load", func(b *testing.B) {
		b.SetBytes(int64(text.Len()))
		for b.Loop() {
			c = c.Next(noon, documents)
			if len(c.Templates()) != 10_000 {
				b.Fatal(refused(c))
			}
		}
	})
	b.Run("resolve", func(b *testing.B) {
		for b.Loop() {
			if _, err := c.Template(registry.Viewer{}, "t5000", ""); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("refuse", func(b *testing.B) {
		for b.Loop() {
			if _, err := c.Template(registry.Viewer{}, "t", ""); err == nil {
				b.Fatal("an unknown name is resolved")
			}
		}
	})
}

// A small text that aliases make a large one of is not decoded, and what was in force stays.
func TestAliasesAreCounted(t *testing.T) {
	values := strings.Repeat("x, ", 15_000)
	bomb := "- &a {name: llama, spec: {engine_args: {odd: [" + values + "x]}}}\n" +
		strings.Repeat("- *a\n", 10_000)
	began := time.Now()
	next := read(read(nil, template()), bomb)
	if all := refused(next); len(all) != 1 || !strings.Contains(all[0], "aliases repeat") ||
		len(next.Templates()) != 1 {
		t.Errorf("%d templates, refused %.300q", len(next.Templates()), all)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("reading it took %v", took)
	}
	loop := read(nil, "- &a {name: x, spec: {engine_args: {odd: *a}}}")
	if all := refused(loop); len(all) != 1 || !strings.Contains(all[0], "aliases repeat") {
		t.Errorf("an alias within itself: %.300q", all)
	}
}

// A row that moves makes no other reason of a fault.
func TestRowsDoNotRenewFaults(t *testing.T) {
	faulty := template("count: 4=>count: 5")
	c := read(nil, faulty).Next(noon.Add(time.Hour), []registry.Document{{Name: "d0",
		Text: []byte("# a comment\n" + faulty)}})
	if all := c.Refused(); len(all) != 1 || !all[0].Since.Equal(noon) || all[0].Row != 9 {
		t.Errorf("refused: %+v", all)
	}
}

// BenchmarkFaultyItems reads items of which all are faulty, again.
func BenchmarkFaultyItems(b *testing.B) {
	var text strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&text, "- {name: t%d, spec: {engine: {type: x}}}\n", i)
	}
	documents := []registry.Document{{Name: "d", Text: []byte(text.String())}}
	c := (*registry.Catalogs)(nil).Next(noon, documents)
	for b.Loop() {
		if c = c.Next(noon, documents); len(c.Refused()) != 10_000 {
			b.Fatal(len(c.Refused()))
		}
	}
}
