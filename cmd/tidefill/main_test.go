package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/apptest"
)

// asMain makes the test binary behave as the program, for tests that need a process.
const asMain = "TIDEFILL_TEST_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
	}
	os.Exit(runTests(m))
}

// runTests runs the tests without the contexts and variables of whoever runs them.
func runTests(m *testing.M) int {
	home, err := os.MkdirTemp("", "tidefill-cli-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(home)
	os.Setenv("XDG_CONFIG_HOME", home)
	os.Unsetenv("OPENAI_BASE_URL")
	return m.Run()
}

// outcome is what a command left behind.
type outcome struct {
	status      int
	out, errors string
}

// command runs the program in process.
func command(t *testing.T, args ...string) outcome {
	t.Helper()
	return commandWith(t, "", args...)
}

func commandWith(t *testing.T, stdin string, args ...string) outcome {
	t.Helper()
	var out, errors bytes.Buffer
	status := run(t.Context(), args, strings.NewReader(stdin), &out, &errors)
	return outcome{status, out.String(), errors.String()}
}

// must is command with a known status.
func must(t *testing.T, status int, args ...string) outcome {
	t.Helper()
	got := command(t, args...)
	if got.status != status {
		t.Fatalf("tidefill %s: status %d, want %d\nout: %s\nerrors: %s", strings.Join(args, " "),
			got.status, status, got.out, got.errors)
	}
	return got
}

// startDaemon runs a daemon without keys on free ports over the data directory, and makes it the
// default server of commands. It ends with stop or with the test.
func startDaemon(t *testing.T, data string, upstreams ...string) (a *app.App, stop func()) {
	t.Helper()
	return startDaemonWith(t, apptest.Config(data, upstreams...), app.Options{})
}

func startDaemonWith(
	t *testing.T, cfg config.Config, options app.Options,
) (a *app.App, stop func()) {
	t.Helper()
	a, stop = apptest.Start(t, cfg, options)
	t.Setenv("TIDEFILL_SERVER", a.URL())
	return a, stop
}

// writeFile puts content into a file of the test's own.
func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// idOf reads the id of the object that a command printed.
func idOf(t *testing.T, printed string) string {
	t.Helper()
	var object struct{ ID string }
	if err := json.Unmarshal([]byte(printed), &object); err != nil || object.ID == "" {
		t.Fatalf("no object with an id: %s", printed)
	}
	return object.ID
}
