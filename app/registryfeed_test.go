package app

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/registry"
)

const registryDocument = `- name: llama
  spec:
    engine: {type: vllm, version: "0.11.0", image: "vllm/vllm-openai:v0.11.0"}
    model_source: {type: huggingface, uri: org/model}
    accelerator: {type: H100-SXM, count: 4}
    parallelism: {tp: 4}
    supported_endpoints: [/v1/chat/completions]
    service_id: x
---
items: [{name: day}, {name: night, spec: {priority: low}}]
---
- {name: a, spec: {useCases: [{modelName: a}], poolRef: [{name: prod}]}}
- {name: b, spec: {useCases: [{modelName: b}], poolRef: [{name: other}]}}
`

// oneDocument is a source whose text and error are set by a test.
type oneDocument struct {
	text string
	err  error
}

func (d *oneDocument) Read() ([]registry.Document, bool, error) {
	if d.err != nil {
		return nil, false, d.err
	}
	return []registry.Document{{Name: "all.yaml", Text: []byte(d.text)}}, true, nil
}

// values returns the values of all series of the feed's metrics.
func values(t *testing.T, f *registryFeed) (rows []string) {
	t.Helper()
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(registryCollector{f, func() *registry.Snapshot {
		return registry.New([]registry.Pool{{Name: "prod"}}, flowcontrol.DefaultConfig())
	}})
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			name := strings.TrimPrefix(family.GetName(), "tidefill_registry_")
			rows = append(rows, strings.TrimSpace(fmt.Sprintf("%s %s", name,
				strings.Join(labels, " ")))+fmt.Sprintf(": %v", m.GetGauge().GetValue()))
		}
	}
	return rows
}

// The metrics show what is in force, what is refused, and sources that are away.
func TestRegistryMetrics(t *testing.T) {
	noon := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	source := &oneDocument{text: registryDocument}
	f := &registryFeed{log: slog.New(slog.DiscardHandler), current: &registry.Catalogs{}}
	f.look(t.Context(), noon)
	if got := values(t, f); !slices.Contains(got, "last_read_timestamp_seconds: NaN") {
		t.Errorf("without a source: %q", got)
	}
	f.sources = []*itemSource{{documents: source, name: "dir"}}
	f.look(t.Context(), noon)
	want := []string{"items objective active: 0", "items pool active: 0",
		"items profile active: 1", "items template active: 1",
		"items template deprecated: 0", "items template draft: 0",
		"items usecase active: 1", "items usecase waiting: 1",
		fmt.Sprintf("last_read_timestamp_seconds: %v", float64(noon.Unix())),
		"refused document: 0", "refused objective: 0", "refused pool: 0", "refused profile: 1",
		"refused template: 0", "refused usecase: 0", "sources_away: 0", "warnings: 1"}
	if diff := cmp.Diff(want, values(t, f)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// What was read last stays when the source is away, and so does the time of the last look.
	source.err = errors.New("is gone")
	f.look(t.Context(), noon.Add(time.Minute))
	want[15] = "sources_away: 1"
	if diff := cmp.Diff(want, values(t, f)); diff != "" {
		t.Errorf("away (-want +got)\n%s", diff)
	}
	if s := f.sourcesNow(); len(s) != 1 || s[0].Name != "dir" || !errors.Is(s[0].Err, source.err) {
		t.Errorf("sources: %+v", s)
	}
	if p := f.problems(); len(p) != 2 || p[0] != "registry: dir: is gone" {
		t.Errorf("problems: %q", p)
	}
	source.err, source.text = nil, "- ["
	f.look(t.Context(), noon.Add(time.Hour))
	if got := values(t, f); !slices.Contains(got, "refused document: 1") ||
		!slices.Contains(got, "items template active: 1") {
		t.Errorf("a document that can't be read: %q", got)
	}
}

// Neither the log nor /readyz shows a secret that a refused item has.
func TestRefusalsAreReportedWithoutSecrets(t *testing.T) {
	source := &oneDocument{text: "- name: x\n  spec: {engine: {serve_args: --api-key=TOPSECRET}}"}
	var log strings.Builder
	f := &registryFeed{log: slog.New(slog.NewTextHandler(&log, nil)),
		current: &registry.Catalogs{}, sources: []*itemSource{{documents: source, name: "dir"}}}
	f.look(t.Context(), time.Unix(0, 0))
	all := log.String() + strings.Join(f.problems(), "\n")
	if !strings.Contains(all, "must be a list") || strings.Contains(all, "TOPSECRET") {
		t.Errorf("reported: %s", all)
	}
}

// A document in which everything is refused does not fill the log, and not again when rows move.
func TestManyRefusalsAreLoggedShortly(t *testing.T) {
	text := strings.Repeat("- {name: x, spec: {}}\n", 1000)
	source := &oneDocument{text: text}
	var log strings.Builder
	f := &registryFeed{log: slog.New(slog.NewTextHandler(&log, nil)),
		current: &registry.Catalogs{}, sources: []*itemSource{{documents: source, name: "dir"}}}
	f.look(t.Context(), time.Unix(0, 0))
	for i := range text[:1000] {
		source.text = fmt.Sprintf("- {name: x%d, spec: {}}\n", i) + source.text
	}
	f.look(t.Context(), time.Unix(1, 0))
	source.text = "# a comment\n" + source.text
	f.look(t.Context(), time.Unix(2, 0))
	if n := strings.Count(log.String(), "\n"); n > 2*(maxRefused+1)+3 {
		t.Errorf("%d rows in the log", n)
	}
}
