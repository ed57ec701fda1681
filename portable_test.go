package tidefill_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// notReproducible lists the packages below the core ones whose results need not be the same to the
// last bit on every processor of one architecture. A fit is written with six digits.
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

// The functions of package math that are written in assembly, whose last bits depend on the
// processor, are not used.
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
