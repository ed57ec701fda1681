package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var (
	buildOnce sync.Once
	built     string
	buildErr  error
)

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		os.RemoveAll(filepath.Dir(built))
	}
	os.Exit(code)
}

// go test reuses a result only if a variable that a test has read is the same.
func TestOfTheseSources(*testing.T) { os.Getenv("TIDEFILL_SOURCES") }

// binary builds the program as the image has it, once, and returns its path.
func binary(t *testing.T) string {
	t.Helper()
	buildOnce.Do(func() {
		var dir string
		//nolint:usetesting // all tests share it
		if dir, buildErr = os.MkdirTemp("", "tidefill-deploy-"); buildErr != nil {
			return
		}
		built = filepath.Join(dir, "tidefill")
		c := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", built,
			"./cmd/tidefill")
		c.Dir = "../.."
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
		c.Stderr = os.Stderr
		buildErr = c.Run()
	})
	if buildErr != nil {
		t.Fatalf("build: %v", buildErr)
	}
	return built
}
