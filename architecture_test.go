// Package tidefill_test checks the rules that hold between the packages of the module: which of
// them are pure, and which may import which.
package tidefill_test

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

// corePackages must stay pure: given the time, the state and an event, they return what to do.
var corePackages = []string{
	"registry", "costmodel", "scheduler", "flowcontrol", "autoscale", "dispatch/plan", "simulator",
	"simulator/lab/oracle", "simulator/lab/policies", "simulator/lab/random",
}

// drivers lists packages below a core package that are not core, with the reason.
var drivers = map[string]string{
	"autoscale/driver":          "it decides in a running daemon",
	"registry/file":             "it reads files",
	"registry/kube":             "it reads what an API server said last",
	"autoscale/keda":            "it serves KEDA",
	"autoscale/kube":            "it watches an API server and acts on it",
	"simulator/compare":         "it spreads runs over processors and reads files",
	"simulator/tune":            "it spreads runs over processors",
	"simulator/compare/results": "it keeps results in files",
}

// mayImport lists the packages of ours that a package may import, as docs/architecture.md has it.
// Packages below a listed one follow its rule unless they are listed themselves. Those of anywhere
// stand below all others.
var mayImport = map[string][]string{
	"internal/answercheck":  {},
	"internal/batchfile":    {},
	"internal/closing":      {},
	"internal/csvlines":     {},
	"internal/filewatch":    {},
	"internal/httpserver":   {"internal/filewatch"},
	"internal/recording":    {"dispatch/plan", "flowcontrol"},
	"internal/wallclock":    {},
	"costmodel":             {},
	"scheduler":             {"scheduler", "costmodel"},
	"flowcontrol":           {"flowcontrol", "costmodel", "internal/portable"},
	"telemetry":             {"flowcontrol", "runner"},
	"tracing":               {"store"},
	"internal/strictyaml":   {},
	"registry":              {"flowcontrol", "internal/strictyaml"},
	"registry/file":         {"registry", "internal/strictyaml", "internal/filewatch"},
	"registry/kube":         {"registry"},
	"autoscale":             {"scheduler", "flowcontrol", "costmodel", "dispatch/plan", "registry"},
	"autoscale/keda":        {"registry", "autoscale", "internal/httpserver"},
	"autoscale/kube":        {"autoscale"},
	"store":                 {"store", "internal/batchfile", "internal/closing"},
	"internal/testservers":  {"internal/testservers"},
	"store/buckets":         {"store"},
	"store/live":            {"store"},
	"store/places":          {"store", "store/disk", "store/s3"},
	"store/redis":           {"store"},
	"store/tables":          {"store", "internal/batchfile"},
	"dispatch/plan":         {"scheduler", "flowcontrol", "costmodel"},
	"dispatch/plan/routing": {},
	"dispatch/work": {"dispatch/plan", "registry", "store", "internal/batchfile",
		"internal/answercheck", "tracing"},
	"dispatch/lead": {"dispatch/work", "dispatch/upstream", "dispatch/plan", "flowcontrol",
		"store"},
	"dispatch/claim": {"dispatch/work", "dispatch/plan", "internal/batchfile", "scheduler",
		"store"},
	"dispatch/send": {"dispatch/work", "dispatch/upstream", "dispatch/openai", "dispatch/plan",
		"internal/batchfile", "internal/answercheck", "store", "tracing"},
	"dispatch/finish": {"dispatch/work", "dispatch/openai", "dispatch/plan",
		"internal/batchfile", "store"},
	"dispatch/upstream": {"dispatch/openai", "dispatch/plan", "flowcontrol", "store",
		"internal/batchfile", "runner"},
	"dispatch/async":    {"dispatch/openai", "dispatch/upstream"},
	"dispatch/openai":   {"dispatch/plan", "internal/batchfile"},
	"dispatch/decision": {"dispatch/plan", "flowcontrol"},
	"dispatch": {"registry", "dispatch", "store", "internal/batchfile", "scheduler",
		"flowcontrol", "runner", "tracing"},
	"app/console": {"api", "store", "dispatch", "dispatch/decision", "dispatch/plan", "flowcontrol",
		"telemetry", "autoscale", "registry", "internal/strictyaml"},
	"api": {"api", "store", "internal/answercheck", "internal/batchfile", "internal/csvlines",
		"scheduler", "registry", "tracing"},
	"inline": {"dispatch/plan", "registry", "scheduler/flows", "internal/batchfile",
		"internal/httpserver"},
	"client":           {"internal/batchfile"},
	"runner":           {"runner", "simulator/engine", "internal/httpserver"},
	"simulator/engine": {"costmodel"},
	"simulator/compare": {"config", "costmodel", "dispatch/plan", "simulator",
		"internal/recording"},
	"internal/simflags": {"config", "simulator"},
	"simulator/tune":    {"config", "simulator"},
	"simulator/fit": {"costmodel", "simulator/engine", "simulator/fit",
		"internal/recording"},
	"simulator/lab/oracle":   {"costmodel", "flowcontrol", "simulator"},
	"simulator/lab/policies": {"costmodel", "flowcontrol", "simulator/compare", "simulator/lab"},
	"simulator/lab/random":   {"costmodel", "simulator"},
	"simulator/workload":     {},
	"simulator/scenario":     {"simulator/engine", "simulator/workload"},
	"simulator": {"registry", "costmodel", "autoscale", "dispatch/plan", "scheduler", "flowcontrol",
		"simulator", "internal/recording"},
	"autoscale/driver": {"registry", "autoscale", "dispatch", "dispatch/plan", "flowcontrol",
		"store"},
	"config": {"registry", "config", "api", "autoscale", "autoscale/keda", "autoscale/kube",
		"dispatch",
		"flowcontrol", "inline", "internal/httpserver", "internal/wallclock", "scheduler",
		"store", "telemetry", "tracing"},
}

// anywhere lists the packages of ours that any other may import. They know nothing of Tidefill.
var anywhere = []string{
	"internal/portable", "internal/humanize", "internal/byname", "internal/suggest",
	"internal/yamlfault", "internal/hangup", "internal/faults",
	"internal/shellword", "internal/collectors", "internal/heap",
}

func TestCorePackagesArePure(t *testing.T) {
	forbidden := map[string][]string{
		"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer",
			"NewTicker", "Tick"},
		"math/rand": nil, // nil: nothing of it
		"math/rand/v2": {"Int", "IntN", "Float64", "Perm", "Shuffle", "N", "Uint64", "NormFloat64",
			"ExpFloat64", "Int64N", "Uint32"},
		"log": nil, "log/slog": nil, "net": nil, "net/http": nil, "os": nil, "sync": nil,
		"crypto/rand": nil,
	}
	for _, dir := range corePackages {
		for path, file := range sources(t, dir) {
			if _, driver := drivers[filepath.Dir(path)]; driver {
				continue
			}
			names := map[string]string{} // package name -> path
			for _, spec := range file.Imports {
				imported, _ := strconv.Unquote(spec.Path.Value)
				if only, listed := forbidden[imported]; listed && only == nil {
					t.Errorf("%s imports %s: core packages neither act nor log", path, imported)
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
				pkg, ours := strings.CutPrefix(imported, module)
				if !ours || strings.HasPrefix(pkg+"/", filepath.Dir(path)+"/") ||
					slices.Contains(anywhere, pkg) {
					continue
				}
				if !slices.ContainsFunc(allowed, func(a string) bool {
					return strings.HasPrefix(pkg+"/", a+"/")
				}) {
					t.Errorf("%s imports %s; packages in %s may import only %v", path, pkg, dir,
						allowed)
				}
			}
		}
	}
}

// One package talks to API servers of Kubernetes, with one set of clients; app passes on what it
// says.
func TestOnlyOnePackageIsAClientOfKubernetes(t *testing.T) {
	const owner = "autoscale/kube"
	clients := 0
	for path, file := range sources(t, ".") {
		for _, spec := range file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if !strings.HasPrefix(imported, "k8s.io/client-go") {
				continue
			}
			if clients++; filepath.Dir(path) != owner {
				t.Errorf("%s imports %s; only %s may", path, imported, owner)
			}
		}
	}
	if clients == 0 {
		t.Errorf("found no client of Kubernetes in %s", owner)
	}
}

// One package uses OpenTelemetry, so that the others know nothing of its types.
func TestOnlyOnePackageUsesOpenTelemetry(t *testing.T) {
	const owner = "tracing"
	for path, file := range sources(t, ".") {
		for _, spec := range file.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if strings.HasPrefix(imported, "go.opentelemetry.io/") && filepath.Dir(path) != owner {
				t.Errorf("%s imports %s; only %s may", path, imported, owner)
			}
		}
	}
}

// owner is the longest directory with a rule that a file stands in.
func owner(path string) string {
	best := ""
	for dir := range mayImport {
		if strings.HasPrefix(path, dir+"/") && len(dir) > len(best) {
			best = dir
		}
	}
	return best
}

// sources parses the Go files below a directory by their path from the module's root. It leaves out
// tests, conformance suites and modules below the directory.
func sources(t *testing.T, dir string) map[string]*ast.File {
	t.Helper()
	root := os.DirFS(".")
	files := map[string]*ast.File{}
	err := fs.WalkDir(root, dir, func(path string, d fs.DirEntry, err error) error {
		if _, none := fs.Stat(root, path+"/go.mod"); none == nil && path != dir {
			return fs.SkipDir
		}
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
