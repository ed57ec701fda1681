package experiment

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
