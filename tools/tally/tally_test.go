package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// module is a module with a package that passes, one that fails and one that does not compile.
var module = map[string]string{
	"go.mod": "module example.com/m\n\ngo 1.24\n",
	"good/good_test.go": `package good
import "testing"
func TestGood(t *testing.T) { t.Log("not shown") }
func TestSkipped(t *testing.T) { t.Skip("no such server") }
`,
	"bad/bad_test.go": `package bad
import "testing"
func TestBad(t *testing.T) { t.Run("part", func(t *testing.T) { t.Error("this is wrong") }) }
`,
	"broken/broken_test.go": "package broken\nfunc x() { y() }\n",
	"panics/panics_test.go": `package panics
import "testing"
func TestPanic(t *testing.T) { go func() { panic("over") }(); select {} }
`,
}

func TestStagesAreReported(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range module {
		os.MkdirAll(filepath.Dir(name), 0o755)
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	runs := func(pkg string) (string, error) {
		var s Stage
		var b strings.Builder
		err := s.read(exec.Command("go", "test", "-json", "-vet=off", pkg), &b)
		s.Name, s.Seconds = strings.TrimPrefix(pkg, "./"), 1
		s.Began = time.Now()
		if err := s.save(); err != nil {
			t.Fatal(err)
		}
		return b.String(), err
	}
	out, err := runs("./good")
	if err != nil || !strings.Contains(out, "ok ") || strings.Contains(out, "not shown") {
		t.Errorf("good: %v\n%s", err, out)
	}
	for pkg, want := range map[string]string{"./bad": "this is wrong", "./broken": "undefined: y",
		"./panics": "panic: over"} {
		if out, err := runs(pkg); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s\nwant %q", pkg, err, out, want)
		}
	}
	var b strings.Builder
	if err := report(&b, time.Minute); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"good            1.0 s      2",
		"no such server:\n    good TestSkipped"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, b.String())
		}
	}
	if err := report(&b, 3*time.Second); err == nil || !strings.Contains(err.Error(), "budget") {
		t.Errorf("four seconds of three: %v", err)
	}
}
