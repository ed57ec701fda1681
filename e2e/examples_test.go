package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/internal/testservers"
)

const examplesDir = "../examples"

// newExamples returns a daemon as examples/README.md starts it, with a key.
func newExamples(t *testing.T) *Daemon {
	t.Helper()
	const model = "Qwen/Qwen3-8B"
	d := NewDaemon(t, Options{Keys: "own=" + ownKey, Upstreams: []string{startRunner(t,
		freeAddress(t), "--profile", "instant", "--model", model)},
		Set: []string{"inline.enabled=true", "flowcontrol.policy=aimd"}})
	awaitInline(t, d, model)
	return d
}

// runExample runs a command in a directory and returns what it prints. It must run a batch to its
// end, and print the answers of all lines.
func runExample(t *testing.T, d *Daemon, dir, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "OPENAI_BASE_URL="+d.URL+"/v1", "OPENAI_API_KEY="+ownKey)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, stderr.Bytes())
	}
	if !strings.Contains(stderr.String(), "completed") {
		t.Errorf("the batch has not completed:\n%s", stderr.Bytes())
	}
	for _, id := range []string{"review-1", "review-2", "review-3"} {
		if !strings.Contains(string(out), id) {
			t.Errorf("the results lack %s:\n%s", id, out)
		}
	}
	return string(out)
}

// nodeExample returns a copy of an example, beside the packages that are installed for tests.
func nodeExample(t *testing.T, name string) (dir string) {
	t.Helper()
	if err := nodeModules(); err != nil {
		t.Fatal(err)
	}
	installed, err := filepath.Abs("node/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(examplesDir, name))); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(installed, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestExamplesOfClients(t *testing.T) {
	t.Parallel()
	d := newExamples(t)
	requests, err := filepath.Abs(filepath.Join(examplesDir, "requests.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("curl", func(t *testing.T) {
		for _, program := range []string{"curl", "jq"} {
			testservers.Path(t, program)
		}
		runExample(t, d, filepath.Join(examplesDir, "curl"), "./batch.sh", requests)
	})
	t.Run("python", func(t *testing.T) {
		testservers.Path(t, "python3")
		dir := filepath.Join(examplesDir, "python")
		if exec.Command("python3", "-c", "import openai").Run() == nil {
			runExample(t, d, dir, "python3", "batch.py", requests)
			return
		}
		c := exec.CommandContext(t.Context(), "python3", "-m", "py_compile", "batch.py")
		c.Dir, c.Env = dir, append(os.Environ(), "PYTHONPYCACHEPREFIX="+t.TempDir())
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("node", func(t *testing.T) {
		runExample(t, d, nodeExample(t, "node"), "node", "batch.mjs", requests)
	})
	t.Run("go", func(t *testing.T) {
		runExample(t, d, filepath.Join(examplesDir, "go"), "go", "run", ".", requests)
	})
	t.Run("ai-sdk", func(t *testing.T) {
		out := runExample(t, d, nodeExample(t, "ai-sdk"), "node", "reviews.mjs")
		if answer, _, _ := strings.Cut(out, "\n"); answer == "" || strings.HasPrefix(answer, "{") {
			t.Errorf("there is no streamed answer before the results:\n%s", out)
		}
	})
}
