package compare

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const plainScenario = `name: plain
horizon: 5m
interactive: {generator: conversation, rate: 1}
`

func writeScenario(t *testing.T, file, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// What only the profile and the scenario together make impossible has a place in the file too.
func TestImpossiblePoolsAreRefusedWithTheirLine(t *testing.T) {
	for text, want := range map[string]string{
		"pool:\n  profile: llama-70b-a100\n  replicas: 1\n  max_seqs: 1024\n" +
			"  max_batched_tokens: 512\n": ":8: pool.max_batched_tokens is 512, want at least " +
			"max_seqs (1024)",
		"pool:\n  profile: llama-70b-a100\n  replicas: 1\n  max_seqs: 100000\n": ":7: " +
			"pool.max_seqs",
		"pool: {profile: llama-70b-a100, replicas: 1}\nbatch_pools:\n- name: spot\n" +
			"  replicas: 1\n  kv_tokens: 1\n": ":8: batch_pools[0].kv_tokens is 1, want",
	} {
		file := writeScenario(t, filepath.Join(t.TempDir(), "x.yaml"), plainScenario+text)
		_, err := openScenario(file, Trace{})
		if err == nil || !strings.HasPrefix(err.Error(), file+want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %s%s", err, file, want)
		}
	}
}

// Results of scenarios from several directories do not overwrite each other.
func TestScenariosOfOneFileNameHaveNamesOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for _, name := range []string{"a/x.yaml", "b/x.yaml", "c/x-2.yaml"} {
		files = append(files, writeScenario(t, filepath.Join(dir, name),
			plainScenario+"pool: {profile: llama-70b-a100, replicas: 1}\n"))
	}
	scenarios, err := OpenScenarios(files, Trace{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"x", "x-2", "x-2-2"} {
		if got := scenarios[i].Name; got != want {
			t.Errorf("%s: results are named %s, want %s", files[i], got, want)
		}
	}
	c := Comparison{Scenarios: scenarios, Events: filepath.Join(dir, "out")}
	logs, err := c.openEventLogs()
	if err != nil {
		t.Fatal(err)
	}
	if err := logs.close(); err != nil {
		t.Fatal(err)
	}
	if written, err := os.ReadDir(c.Events); err != nil || len(written) != len(files) {
		t.Errorf("%d event logs, want %d; %v", len(written), len(files), err)
	}
}
