package flowcontrol

import (
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// The compiler for arm64 fuses a product into the sum that follows, across
// statements too, unless a conversion stands between. Decisions would fall otherwise there than here.
func TestNothingIsFused(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("needs the go command")
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-S", "-o", os.DevNull, ".")
	build.Env = append(os.Environ(), "GOARCH=arm64", "GOOS=linux", "CGO_ENABLED=0", "GOFLAGS=")
	assembly, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("build for arm64: %v\n%.2000s", err, assembly)
	}
	if len(regexp.MustCompile(`\bFMULD\b`).FindAll(assembly, -1)) < 10 {
		t.Fatal("the assembly has hardly a product; is it still written like this?")
	}
	for _, line := range regexp.MustCompile(`\((\S+\.go:\d+)\)\s+FN?M(ADD|SUB)[DS]`).FindAllSubmatch(assembly, -1) {
		t.Errorf("%s: a product is fused into a sum; round it with float64(...)", line[1])
	}
}
