package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/tidefill/tidefill/"

// decisions are the packages that must stay pure: given the time, the state and an event, they say
// what to do. deeds stand below them all the same.
var (
	decisions = []string{"scheduler", "flowcontrol", "autoscale", "dispatch/plan", "simulator"}
	deeds     = []string{"flowcontrol/probe"}
)

// mayImport says which packages of ours a package may import, as docs/architecture.md has it.
// Packages below a named one follow its rule unless they are named themselves.
var mayImport = map[string][]string{
	"store/batchfile":    {},
	"store":              {"store"},
	"scheduler":          {"scheduler"},
	"flowcontrol":        {"flowcontrol"},
	"flowcontrol/probe":  {"flowcontrol", "runner"},
	"autoscale":          {"scheduler", "flowcontrol"},
	"dispatch/plan":      {"scheduler", "flowcontrol"},
	"dispatch/openai":    {"dispatch/plan", "store/batchfile"},
	"recording":          {"dispatch/plan", "flowcontrol"},
	"dispatch":           {"dispatch", "store", "scheduler", "flowcontrol"},
	"simulator/portable": {},
	"simulator/engine":   {"simulator/portable"},
	"simulator/fit":      {"simulator/engine", "simulator/fit", "recording"},
	"simulator/workload": {"simulator/portable"},
	"simulator/scenario": {"simulator/engine", "simulator/workload"},
	"simulator": {"autoscale", "dispatch/plan", "scheduler", "flowcontrol", "simulator",
		"recording"},
	"runner":             {"runner", "simulator/engine"},
	"api":                {"api", "store", "scheduler"},
	"wallclock":          {},
	"internal/filewatch": {},
	"httpserver":         {"internal/filewatch"},
	"config": {"config", "api", "wallclock", "autoscale", "dispatch", "scheduler",
		"flowcontrol", "httpserver"},
}

func TestDecisionsArePure(t *testing.T) {
	forbidden := map[string][]string{
		"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer",
			"NewTicker", "Tick"},
		"math/rand": nil, // nil: nothing of it
		"math/rand/v2": {"Int", "IntN", "Float64", "Perm", "Shuffle", "N", "Uint64", "NormFloat64",
			"ExpFloat64", "Int64N", "Uint32"},
		"log": nil, "log/slog": nil, "net": nil, "net/http": nil, "os": nil, "sync": nil,
		"crypto/rand": nil,
	}
	for _, dir := range decisions {
		for path, file := range sources(t, dir) {
			if slices.Contains(deeds, owner(path)) {
				continue
			}
			names := map[string]string{} // package name -> path
			for _, spec := range file.Imports {
				imported, _ := strconv.Unquote(spec.Path.Value)
				if only, listed := forbidden[imported]; listed && only == nil {
					t.Errorf("%s imports %s: decisions neither act nor log", path, imported)
				}
				base := filepath.Base(strings.TrimSuffix(imported, "/v2"))
				if spec.Name != nil {
					base = spec.Name.Name
				}
				names[base] = imported
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					t.Errorf("%s starts a goroutine", path)
				case *ast.SelectorExpr:
					if x, ok := n.X.(*ast.Ident); ok && x.Obj == nil && slices.Contains(
						forbidden[names[x.Name]], n.Sel.Name) {
						t.Errorf("%s uses %s.%s: time and randomness are handed in", path, x.Name,
							n.Sel.Name)
					}
				}
				return true
			})
		}
	}
}

func TestImportsFollowTheArrows(t *testing.T) {
	for dir, allowed := range mayImport {
		for path, file := range sources(t, dir) {
			if owner(path) != dir {
				continue // has a rule of its own
			}
			for _, spec := range file.Imports {
				imported, _ := strconv.Unquote(spec.Path.Value)
				room, ours := strings.CutPrefix(imported, module)
				if !ours || strings.HasPrefix(room+"/", filepath.Dir(path)+"/") {
					continue
				}
				if !slices.ContainsFunc(allowed, func(a string) bool {
					return strings.HasPrefix(room+"/", a+"/")
				}) {
					t.Errorf("%s imports %s; packages in %s may import only %v", path, room, dir,
						allowed)
				}
			}
		}
	}
}

// owner is the longest room with a rule that a file stands in.
func owner(path string) string {
	best := ""
	for dir := range mayImport {
		if strings.HasPrefix(path, dir+"/") && len(dir) > len(best) {
			best = dir
		}
	}
	return best
}

// sources parses the Go files below a room, tests and conformance suites left out, by their path
// from the module's root.
func sources(t *testing.T, dir string) map[string]*ast.File {
	t.Helper()
	root := os.DirFS("../..")
	files := map[string]*ast.File{}
	err := fs.WalkDir(root, dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path,
			"_test.go") ||
			strings.HasSuffix(filepath.Dir(path), "test") { // conformance suites are tests
			return err
		}
		source, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		files[path], err = parser.ParseFile(token.NewFileSet(), path, source, 0)
		return err
	})
	if err != nil || len(files) == 0 {
		t.Fatalf("read sources of %s: %d files, %v", dir, len(files), err)
	}
	return files
}
