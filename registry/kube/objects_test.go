package kube_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/registry/kube"
)

// objects are those of a test.
type objects struct{ configMap }

func (o *objects) String() string { return "objects of a test" }

// object returns a manifest as it is followed.
func object(kind, name string, age time.Duration, spec string) string {
	created := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC).Add(-age).Format(time.RFC3339)
	return fmt.Sprintf(`{"apiVersion":"tidefill.dev/v1alpha1","kind":%q,"metadata":{"name":%q,`+
		`"namespace":"llm","creationTimestamp":%q},"spec":%s}`, kind, name, created, spec)
}

func TestObjects(t *testing.T) {
	of := func(pool string) string {
		return `{"useCases":[{"modelName":"m"}],"poolRef":[{"name":"` + pool + `"}]}`
	}
	o := &objects{configMap{err: errors.New("it may not list")}}
	s := kube.NewObjects(registry.UseCases, o)
	if _, changed, err := s.Read(); changed || !errors.Is(err, o.err) ||
		s.String() != "objects of a test" {
		t.Errorf("%v: changed %v, error %v", s, changed, err)
	}
	o.listed, o.err = true, nil
	o.entries = map[string]string{"a": object("UseCaseSet", "a", time.Hour, of("p")),
		"b": object("UseCaseSet", "b", 2*time.Hour, of("p")),
		"c": object("UseCaseSet", "c", 0, of("gone")), "d": object("UseCaseSet", "d", 0, "{}")}
	documents, changed, err := s.Read()
	if !changed || err != nil {
		t.Fatalf("changed %v, error %v", changed, err)
	}
	if _, changed, _ = s.Read(); changed {
		t.Error("it has changed without a change")
	}
	c := (*registry.Catalogs)(nil).Next(time.Now(), documents)
	p := kube.NewObjects(registry.Pools, &objects{configMap{listed: true,
		entries: map[string]string{
			"p": object("Pool", "p", 0, `{"models":["m"],"endpoints":["http://a"]}`),
			"q": object("Pool", "q", 0, `{"models":["m"],"endpoints":["http://a"]}`)}}})
	more, _, _ := p.Read()
	c = c.Next(time.Now(), append(documents, more...))
	exists := func(pool string) bool { return pool == "p" }
	taken := func(pool string) string { return map[string]string{"q": "is taken"}[pool] }
	var got []string
	for _, kind := range []registry.Kind{registry.UseCases, registry.Pools} {
		for _, s := range kube.Statuses(c, kind, exists, taken) {
			got = append(got, fmt.Sprint(kind, " ", s.Object, " ", s.Status, " ", s.Reason, ": ",
				s.Message))
		}
	}
	want := []string{ // of two with one model name, the older one counts
		"usecase d false Refused: spec.useCases: is required; list at least one use case",
		`usecase a false Refused: spec.useCases[0].modelName: is "m", which is a use case of ` +
			"pool p already: that of the set llm/b in usecase object llm/b:1, which counts; " +
			"rename one, or let the sets have other pools",
		"usecase b true Accepted: The use cases are in force.",
		"usecase c false PoolNotFound: Use cases wait for pools that do not exist: gone. Add " +
			"them, or correct spec.poolRef.",
		"pool p true Accepted: The pool is in use.",
		"pool q false Refused: is taken",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// InferenceObjectives belong to others, and may have fields that are not known here.
func TestObjectivesHaveOtherFields(t *testing.T) {
	s := kube.NewObjects(registry.Objectives, &objects{configMap{listed: true,
		entries: map[string]string{"up": object("InferenceObjective", "up", 0,
			`{"priority":7,"poolRef":{"group":"g","kind":"InferencePool","name":"p"},"new":[1]}`),
			"bad": object("InferenceObjective", "bad", 0, `{"priority":"high"}`)}}})
	documents, _, _ := s.Read()
	c := (*registry.Catalogs)(nil).Next(time.Now(), documents)
	o, found := c.Objective("up")
	if !found || o.Class() != registry.ClassCritical || o.Spec.PoolRef.Name != "p" {
		t.Errorf("%+v, %v", o, found)
	}
	if all := c.Refused(); len(all) != 1 || all[0].Path != "spec.priority" {
		t.Errorf("refused %+v", all)
	}
}
