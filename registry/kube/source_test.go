package kube_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/registry/kube"
)

// configMap is a ConfigMap of a test.
type configMap struct {
	entries map[string]string
	listed  bool
	err     error
}

func (m *configMap) Read() (map[string]string, bool, error) { return m.entries, m.listed, m.err }

func profile(name string) string { return "items:\n- name: " + name + "\n  spec: {}\n" }

func TestSource(t *testing.T) {
	cfg := kube.DefaultConfig()
	cfg.Namespace = "aibrix-system"
	forbidden := errors.New("it may not list")
	m := &configMap{err: forbidden}
	s := kube.New(cfg, cfg.Profiles, m)
	const name = "configmap aibrix-system/aibrix-batch-profiles"
	if s.String() != name {
		t.Errorf("it is named %s", s)
	}
	var c *registry.Catalogs
	check := func(err error, want ...string) {
		t.Helper()
		documents, changed, got := s.Read()
		if !errors.Is(got, err) {
			t.Errorf("error %v, want %v", got, err)
		}
		all := []string{"unchanged"}
		if changed {
			c, all = c.Next(time.Now(), documents), nil
			for _, e := range c.Profiles() {
				all = append(all, e.Item.Name)
			}
			for _, r := range c.Refused() {
				all = append(all, strings.TrimPrefix(r.String(), name))
			}
		}
		if diff := cmp.Diff(want, all); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	set := func(key, text string) { m.entries = map[string]string{key: text} }

	check(forbidden, "unchanged")
	m.listed, m.err = true, nil // it does not exist
	check(nil)
	check(nil, "unchanged")
	set("profiles.yaml", profile("day"))
	check(nil, "day")
	check(nil, "unchanged")
	set("profiles.yaml", profile("night"))
	m.err = forbidden // to watch: what was listed comes first
	check(nil, "night")
	check(forbidden, "unchanged")
	m.err = nil
	set("profiles.yaml", "- name: night\n  spec: {}\n") // as templates are written
	check(nil, "night", " profiles.yaml:1: must be a table with the keys default and items")
	set("profile.yaml", profile("late"))
	check(nil, "night", " profiles.yaml: does not exist, only profile.yaml; name the entry "+
		"profiles.yaml, or delete the ConfigMap")
	check(nil, "unchanged")
	m.entries = map[string]string{"profiles.yaml": profile("day"), "templates.yaml": "", "x": "["}
	check(nil, "day")
	m.entries = nil // it is deleted
	check(nil)
}

func TestConfig(t *testing.T) {
	cfg := kube.DefaultConfig()
	if cfg.Enabled() || cfg.Names() != nil || cfg.Validate() != nil {
		t.Errorf("by default it reads %q, %v", cfg.Names(), cfg.Validate())
	}
	cfg.Namespace, cfg.Templates = "models", "aibrix-batch-profiles"
	if got := cfg.Names(); len(got) != 1 || got[0] != cfg.Profiles {
		t.Errorf("one ConfigMap with both entries is read as %q", got)
	}
	err := kube.Config{Namespace: "A", Templates: "b_c"}.Validate()
	want := `namespace: is "A", must be the name of a namespace: at most 63 lower-case letters, ` +
		`digits and dashes
templates: is "b_c", must be the name of a ConfigMap: lower-case letters, digits, dashes and dots
profiles: is "", must be the name of a ConfigMap: lower-case letters, digits, dashes and dots`
	if err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
