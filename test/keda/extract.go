//go:build ignore

// Command extract writes the package scalers: the two files of KEDA that hold its clients of
// external scalers, byte for byte as in the module that go.mod names, and the one constant that
// they need of the others. KEDA's own package also holds the clients of all other scalers, for
// which 2,000 packages more would be compiled.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("extract: ")
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/kedacore/keda/v2").Output()
	if err != nil {
		log.Fatal(err)
	}
	source := filepath.Join(strings.TrimSpace(string(dir)), "pkg", "scalers")
	if err := os.MkdirAll("scalers", 0o755); err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"external_scaler.go", "scaler.go"} {
		text, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			log.Fatal(err)
		}
		write(name, text)
	}
	value, err := constant(source, "externalMetricType")
	if err != nil {
		log.Fatal(err)
	}
	write("constants.go", fmt.Appendf(nil, "package scalers\n\nconst externalMetricType = %s\n",
		value))
}

func write(name string, text []byte) {
	path := filepath.Join("scalers", name)
	if before, err := os.ReadFile(path); err == nil && string(before) == string(text) {
		return
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		log.Fatal(err)
	}
}

// constant returns the value of a constant of a package, as it is written there.
func constant(dir, name string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return "", err
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return "", err
		}
		for _, declared := range file.Decls {
			group, ok := declared.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				spec := spec.(*ast.ValueSpec)
				for i, ident := range spec.Names {
					if ident.Name != name || i >= len(spec.Values) {
						continue
					}
					if value, ok := spec.Values[i].(*ast.BasicLit); ok {
						return value.Value, nil
					}
				}
			}
		}
	}
	return "", fmt.Errorf("%s declares no constant %s", dir, name)
}
