package tidefill_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// notReproducible lists the packages below the core ones whose results need not be the same to the
// last bit on every processor. A fit is written with six digits.
var notReproducible = []string{"simulator/fit"}

// reproduciblePackages lists the packages that the bytes of a simulation's result depend on.
func reproduciblePackages(t *testing.T) []string {
	t.Helper()
	seen := map[string]bool{}
	for _, dir := range append([]string{"internal/portable"}, corePackages...) {
		for path := range sources(t, dir) {
			if pkg := filepath.ToSlash(filepath.Dir(path)); drivers[pkg] == "" {
				seen[pkg] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(seen)), func(pkg string) bool {
		return slices.ContainsFunc(notReproducible, func(p string) bool {
			return strings.HasPrefix(pkg+"/", p+"/")
		})
	})
}

// The compiler for arm64 fuses a product into the sum that follows, across statements too, unless
// Rounded or an explicit conversion is applied to it. A simulation would then give other results
// there than here.
func TestNothingIsFused(t *testing.T) {
	arguments := []string{"build", "-gcflags=-S"}
	for _, pkg := range reproduciblePackages(t) {
		arguments = append(arguments, module+pkg)
	}
	build := exec.CommandContext(t.Context(), "go", arguments...)
	build.Env = append(os.Environ(), "GOARCH=arm64", "GOOS=linux", "CGO_ENABLED=0", "GOFLAGS=")
	assembly, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("build for arm64: %v\n%.2000s", err, assembly)
	}
	if len(regexp.MustCompile(`\bFMULD\b`).FindAll(assembly, -1)) < 10 {
		t.Fatal("the assembly has fewer than 10 FMULD instructions; has its format changed?")
	}
	var fused []string
	for _, line := range regexp.MustCompile(
		`\((\S+\.go:\d+)\)\s+FN?M(?:ADD|SUB)[DS]`).FindAllSubmatch(assembly, -1) {
		fused = append(fused, string(line[1]))
	}
	slices.Sort(fused)
	for _, place := range slices.Compact(fused) {
		t.Errorf("%s: a product is fused into a sum; wrap the product in portable.Rounded", place)
	}
}

// The functions of package math whose last bits differ between processors are not used.
func TestOnlyPortableFunctionsAreUsed(t *testing.T) {
	unportable := regexp.MustCompile(
		`\bmath\.(Exp|Exp2|Expm1|Log|Log2|Log10|Log1p|Pow|Sin|Cos|Tan|Tanh|Sinh|Cosh|Atan|Atan2|Asin|Acos|Hypot|Cbrt|Gamma|Lgamma|Erf|Erfc|FMA)\(|\.(NormFloat64|ExpFloat64)\(`)
	for _, pkg := range reproduciblePackages(t) {
		files, err := filepath.Glob(pkg + "/*.go")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pkg, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, use := range unportable.FindAll(source, -1) {
				t.Errorf("%s uses %s, whose last bits differ between processors; "+
					"use package portable", file, use)
			}
		}
	}
}
