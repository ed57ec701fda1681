package app_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/internal/apptest"
)

// A pool that a document describes joins those of the configuration while the daemon runs, and
// leaves with its document. What can't be used is said, and concerns no other pool.
func TestPoolsOfDocuments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "pools.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg := apptest.Config(t.TempDir(), apptest.StartRunner(t, nil))
	cfg.Registry.Dir = dir
	d, _ := apptest.Start(t, cfg, app.Options{})
	ask := func(path string, into any) {
		t.Helper()
		answer, err := http.Get(d.AdminURL() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	await := func(want string) {
		t.Helper()
		got := ""
		defer func() {
			if t.Failed() {
				t.Logf("got %q", got)
			}
		}()
		eventually(t, want, func() bool {
			var pools struct{ Data []struct{ Name string } }
			var state struct{ Degraded []string }
			var sets struct {
				UseCases []struct {
					Conditions []struct{ Reason string }
				} `json:"use_cases"`
			}
			ask("/admin/pools", &pools)
			ask("/readyz", &state)
			ask("/admin/registry", &sets)
			got = ""
			for _, p := range pools.Data {
				if p.Name == "extra" {
					got += p.Name + " "
				}
			}
			for _, s := range sets.UseCases {
				got += s.Conditions[0].Reason + " "
			}
			for _, text := range state.Degraded {
				if strings.HasPrefix(text, "registry: ") {
					got += text + " "
				}
			}
			return got == want || strings.HasSuffix(want, ": ") && strings.HasPrefix(got, want)
		})
	}
	set := "kind: UseCaseSet\nmetadata: {name: a}\nspec: {useCases: [{modelName: x}], " +
		"poolRef: [{name: extra}]}\n"
	write(set)
	await("PoolNotFound ")
	extra := apptest.StartRunner(t, nil)
	write(set + "---\nkind: Pool\nmetadata: {name: extra}\nspec: {models: [m], endpoints: [\"" +
		extra + "\"]}\n---\nkind: Pool\nmetadata: {name: pods}\nspec: {models: [m], " +
		"selector: {matchLabels: {app: x}}, replicas: {max: 2}}\n")
	await("extra Accepted registry: pool pods: find the runners of pool pods in Kubernetes: ")
	write(set)
	await("PoolNotFound ")
}
