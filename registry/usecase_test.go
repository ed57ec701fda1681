package registry_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/registry"
)

// useCases returns a list with one set, in which edits are made, each OLD=>NEW.
func useCases(edits ...string) string {
	return edit(`- name: team
  spec:
    useCases:
    - modelName: chat
      objective: {desiredAveragePerOutputTokenLatencyAtP95OverMultipleRequests: 40ms}
      targetModels:
      - {targetModelName: chat-v3, weight: 20}
      - {targetModelName: chat-v4, weight: 80}
      class: critical
      weight: 2.5
      tenants: [a, b]
      sticky: prefix
    - modelName: sum
    poolRef:
    - {name: prod}
`, edits...)
}

// manifest returns the same set as an object of Kubernetes.
func manifest(edits ...string) string {
	_, spec, _ := strings.Cut(useCases(), "  spec:\n")
	return edit("apiVersion: tidefill.dev/v1alpha1\nkind: UseCaseSet\nmetadata:\n  name: team\n"+
		"  namespace: ns\n  labels: {any: thing}\nspec:\n"+spec+"status: {conditions: []}\n",
		edits...)
}

// short returns a list with one use case.
func short(set, model, pools string, targets ...string) string {
	return fmt.Sprintf("- {name: %s, spec: {useCases: [{modelName: %s, targetModels: [%s]}], "+
		"poolRef: [%s]}}\n", set, model, targetsOf(targets), poolsOf(pools))
}

func targetsOf(targets []string) string {
	for i, t := range targets {
		targets[i] = "{targetModelName: " + t + "}"
	}
	return strings.Join(targets, ", ")
}

func poolsOf(pools string) string {
	var all []string
	for _, pool := range strings.Fields(pools) {
		all = append(all, "{name: "+pool+"}")
	}
	return strings.Join(all, ", ")
}

func exists(pools ...string) func(string) bool {
	return func(pool string) bool { return slices.Contains(pools, pool) }
}

func TestGoodUseCases(t *testing.T) {
	for text, set := range map[string]string{useCases(): "team", manifest(): "ns/team",
		"kind: ConfigMap\ndata:\n  usecases.yaml: |\n    " +
			strings.ReplaceAll(useCases(), "\n", "\n    "): "team"} {
		c := read(nil, text)
		if all := refused(c); len(all) > 0 || len(c.Templates()) > 0 {
			t.Fatalf("refused %q of\n%s", all, text)
		}
		m := c.UseCase("a", "chat", exists("prod"))
		want := []*registry.UseCase{{Model: "chat", Set: set, Objective: 40 * time.Millisecond,
			Class: "critical", Weight: 2.5, Targets: []registry.Target{{Model: "chat-v3",
				Weight: 20}, {Model: "chat-v4", Weight: 80}}, Pools: []string{"prod"},
			Tenants: []string{"a", "b"}, Sticky: "prefix"}}
		if diff := cmp.Diff(want, m.UseCases); diff != "" {
			t.Errorf("chat (-want +got):\n%s", diff)
		}
		m = c.UseCase("x", "sum", exists("prod"))
		want = []*registry.UseCase{{Model: "sum", Set: set, Class: "standard", Weight: 1,
			Targets: []registry.Target{{Model: "sum", Weight: 1}}, Pools: []string{"prod"},
			Sticky: "none"}}
		if diff := cmp.Diff(want, m.UseCases); diff != "" {
			t.Errorf("sum (-want +got):\n%s", diff)
		}
	}
	// Rows that a list of others has in common say nothing; a list without any is by its name.
	c := (*registry.Catalogs)(nil).Next(noon, []registry.Document{{Name: "d/usecases.yaml",
		Text: []byte("- name: x\n  spec: {}")}})
	if got := refused(c); len(got) != 1 || !strings.Contains(got[0], "usecase x: spec.useCases") {
		t.Errorf("usecases.yaml: refused %q", got)
	}
}

// Each row breaks one rule. The message has the row, the path, and what to do.
func TestBadUseCases(t *testing.T) {
	for _, row := range rows(t, "bad-usecases.txt") {
		edits, want := row[0], row[1]
		c := read(nil, useCases(edits))
		if diff := cmp.Diff([]string{want}, refused(c)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", edits, diff)
		}
		if len(c.UseCases()) > 0 {
			t.Errorf("%s: a faulty set is in force", edits)
		}
	}
	zero := useCases("weight: 20=>weight: 0", "weight: 80=>weight: 0",
		"- {name: prod}=>- {name: prod}\n    - {name: prod}")
	want := []string{"d0:7: usecase team: spec.useCases[0].targetModels: has weights that add up " +
		"to 0, so that no target gets requests; give one target a weight above 0", "d0:16: " +
		`usecase team: spec.poolRef[1].name: is "prod" again; name a pool once`}
	var got []string
	for _, f := range read(nil, zero).Faults() {
		got = append(got, f.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("two faults (-want +got):\n%s", diff)
	}
	for edits, want := range map[string]string{
		"v1alpha1=>v1": `d0:1: usecase ns/team: apiVersion: is "tidefill.dev/v1", must be ` +
			"tidefill.dev/v1alpha1",
		"  name: team\n=>": "d0:1: usecase ns/: name: has 0 characters, must have 1 to 128",
		"kind: UseCaseSet=>kind: UseCase": `d0:1: kind: is "UseCase", must be one of ConfigMap, ` +
			"UseCaseSet, Pool, InferenceObjective; move other manifests elsewhere",
		"metadata:=>meta: 1\nmetadata:": "d0:3: usecase ns/team: meta: unknown key; known are " +
			"name, namespace, apiVersion, spec",
	} {
		if got := refused(read(nil, manifest(edits))); !slices.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", edits, got, want)
		}
	}
}

// Manifests and lists of a file are joined.
func TestManifestsJoin(t *testing.T) {
	c := read(nil, manifest("chat=>x")+"---\n"+short("b", "m", "p")+"---\n"+
		manifest("name: team=>name: other", "- modelName: chat=>- modelName: y",
			"- modelName: sum=>- modelName: z"))
	var got []string
	for _, e := range c.UseCases() {
		got = append(got, fmt.Sprint(e.Item.Key(), ":", e.Row))
	}
	if diff := cmp.Diff([]string{"b:23", "ns/other:25", "ns/team:1"}, got); diff != "" ||
		len(c.Refused()) > 0 {
		t.Errorf("-want +got:\n%s; refused %q", diff, refused(c))
	}
}

// Use cases are judged together. Each row lists sets as SET MODEL POOLS: TARGETS, and the refusal.
func TestUseCasesOfAPool(t *testing.T) {
	for _, row := range []struct{ sets, want string }{
		{"a m p:; b m q:", ""},
		{"a m p:; b m p q:", `d0:2: usecase b: spec.useCases[0].modelName: is "m", which is a ` +
			"use case of pool p already: that of the set a in d0:1, which counts; rename one, or " +
			"let the sets have other pools"},
		{"a m :; b m q:", `d0:2: usecase b: spec.useCases[0].modelName: is "m", which is a ` +
			"use case of pool q already: that of the set a in d0:1, which counts; rename one, or " +
			"let the sets have other pools"},
		{"z m :; b m :", `d0:2: usecase b: spec.useCases[0].modelName: is "m", which is a ` +
			"use case of every pool already: that of the set z in d0:1, which counts; rename " +
			"one, or let the sets have other pools"},
		{"a m p: m m2", ""}, // a canary of the model itself
		{"a m p: n; b n p: k", ""},
		{"a m p: n; b n p: m", "d0:2: usecase b: spec.useCases[0].targetModels: lead back to the " +
			"use case itself: n -> m -> n; a target is a model of engines, so name that"},
		{"a m p: n; b n q: m", ""},
		{"a m p q: n; b n q r: k; c k r p: m", ""}, // not within one pool
		{"a m : n; b n q: k; c k : m", "d0:3: usecase c: spec.useCases[0].targetModels: lead " +
			"back to the use case itself: k -> m -> n -> k; a target is a model of engines, so " +
			"name that"},
	} {
		text := ""
		for set := range strings.SplitSeq(row.sets, "; ") {
			head, targets, _ := strings.Cut(set, ":")
			words := strings.SplitN(head, " ", 3)
			text += short(words[0], words[1], words[2], strings.Fields(targets)...)
		}
		c := read(nil, text)
		if got := strings.Join(refused(c), "\n"); got != row.want {
			t.Errorf("%s: refused %q, want %q", row.sets, got, row.want)
		}
		if want := strings.Count(row.sets, ";") + 1 - len(c.Refused()); len(c.UseCases()) != want {
			t.Errorf("%s: %d sets in force, want %d", row.sets, len(c.UseCases()), want)
		}
	}
}

// A set that comes to contradict another stays as it was.
func TestContradictingSetsStayAsTheyWere(t *testing.T) {
	first := read(nil, short("a", "m", "p"), short("b", "n", "p"))
	c := read(first, short("a", "m", "p"), short("b", "m", "p"))
	u := c.UseCase("", "n", exists("p"))
	if len(u.UseCases) != 1 || len(c.UseCases()) != 2 || !c.UseCases()[1].Kept ||
		!c.Refused()[0].Kept {
		t.Errorf("%+v, refused %q", u, refused(c))
	}
	later := c.Next(noon.Add(time.Hour), []registry.Document{{Name: "d0",
		Text: []byte(short("a", "m", "p"))}, {Name: "d1", Text: []byte(short("b", "m", "p"))}})
	if all := later.Refused(); len(all) != 1 || !all[0].Since.Equal(noon) || !all[0].Kept {
		t.Errorf("an hour later: %+v", all)
	}
	// What stays may contradict what came before it in the meantime.
	c = read(first, short("a", "n", "p"), short("b", "m", "p", "n")+short("c", "o", "p"))
	if len(c.UseCases()) != 3 || len(c.Refused()) > 0 {
		t.Errorf("%d sets, refused %q", len(c.UseCases()), refused(c))
	}
	c = read(first, short("a", "n", "p"), "- name: b\n  spec: {useCases: 7}")
	if got := refused(c); len(c.UseCases()) != 1 || len(got) != 2 {
		t.Errorf("%d sets, refused %q", len(c.UseCases()), got)
	}
	// A document that can't be read takes none away.
	c = read(first, "kind: [", short("b", "n", "p"))
	if len(c.UseCases()) != 2 || len(c.Refused()) != 1 {
		t.Errorf("%d sets, refused %q", len(c.UseCases()), refused(c))
	}
}

func TestMatch(t *testing.T) {
	ofTenant := strings.Replace(short("t", "own", "p"), "{modelName",
		"{tenants: [acme], modelName", 1)
	c := read(nil, short("a", "m", "p q")+short("b", "m", "r")+short("w", "late", "gone")+
		ofTenant+short("e", "all", ""))
	pools := exists("p", "r")
	show := func(m registry.Match) (s string) {
		for _, u := range m.UseCases {
			s += fmt.Sprint(u.Set, u.Pools, " ")
		}
		return s + fmt.Sprintf("waits %v for %v, implicit %v %v", m.Waits(), m.WaitsFor,
			m.Implicit("p"), m.Implicit("x"))
	}
	for _, row := range []struct{ tenant, model, want string }{
		{"", "m", "a[p] b[r] waits false for [q], implicit false false"},
		{"", "all", "e[] waits false for [], implicit false false"},
		{"", "late", "waits true for [gone], implicit false false"},
		{"acme", "own", "t[p] waits false for [], implicit false false"},
		// The name of a use case is taken within its pool alone.
		{"", "own", "waits false for [], implicit false true"},
		{"", "other", "waits false for [], implicit true true"},
	} {
		if got := show(c.UseCase(row.tenant, row.model, pools)); got != row.want {
			t.Errorf("%s of %q: got %s, want %s", row.model, row.tenant, got, row.want)
		}
	}
	m := c.UseCase("", "m", pools)
	if m.In("r").Set != "b" || m.In("p").Set != "a" || m.In("q") != nil {
		t.Error("a pool has another use case")
	}
	if got := c.UseCaseModels("", pools); !slices.Equal(got, []string{"all", "m"}) {
		t.Errorf("models %q", got)
	}
	var none registry.Catalogs
	if diff := cmp.Diff(registry.Match{}, none.UseCase("", "m", pools),
		cmpopts.IgnoreUnexported(registry.Match{})); diff != "" {
		t.Errorf("without documents: %s", diff)
	}
}

func TestSetsWaitForPools(t *testing.T) {
	set := read(nil, short("a", "m", "p q r")).UseCases()[0].Item
	if got := set.Accepted(exists("p", "q", "r")); !got.Status || got.Reason != "Accepted" {
		t.Errorf("with all pools: %+v", got)
	}
	want := registry.Condition{Type: "Accepted", Reason: "PoolNotFound",
		Message: "Use cases wait for pools that do not exist: q, r. Add them, or correct " +
			"spec.poolRef."}
	if diff := cmp.Diff(want, set.Accepted(exists("p"))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhereModelsAreImplicit(t *testing.T) {
	all := pools()
	all[0].AllowImplicit = true
	s := registry.New(all, flowcontrol.DefaultConfig())
	for pool, want := range map[string]bool{"": true, "day": true, "night": false, "x": false} {
		if got := s.AllowsImplicit(pool); got != want {
			t.Errorf("pool %q: %v", pool, got)
		}
	}
	if !s.HasPool("day") || s.HasPool("x") {
		t.Error("HasPool is wrong")
	}
}

func BenchmarkUseCases(b *testing.B) {
	var text strings.Builder
	for i := range 10_000 {
		text.WriteString(short(fmt.Sprint("s", i), fmt.Sprint("m", i), "p", fmt.Sprint("m", i+1)))
	}
	documents := []registry.Document{{Name: "d", Text: []byte(text.String())}}
	var c *registry.Catalogs
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			if c = c.Next(noon, documents); len(c.UseCases()) != 10_000 {
				b.Fatal(refused(c))
			}
		}
	})
	b.Run("match", func(b *testing.B) {
		pools := exists("p")
		b.ReportAllocs()
		for b.Loop() {
			if m := c.UseCase("t", "m5000", pools); len(m.UseCases) != 1 {
				b.Fatal(m)
			}
		}
	})
}
