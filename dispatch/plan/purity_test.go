package plan_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Decisions are the same in the daemon and in the simulator only while nothing here looks at the world.
func TestPackageIsPure(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		fileSet := token.NewFileSet()
		file, err := parser.ParseFile(fileSet, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range file.Imports {
			path, _ := strconv.Unquote(imported.Path.Value)
			outside := strings.Contains(path, ".") && path != "github.com/tidefill/tidefill/scheduler" && path != "github.com/tidefill/tidefill/flowcontrol"
			switch {
			case outside, path == "os", path == "log", path == "log/slog", path == "sync":
				t.Errorf("%s imports %s", name, path)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s: a goroutine", fileSet.Position(n.Pos()))
			case *ast.SelectorExpr:
				if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "rand" && n.Sel.Name != "Rand" {
					t.Errorf("%s: rand.%s", fileSet.Position(n.Pos()), n.Sel.Name)
				} else if ok && pkg.Name == "time" {
					switch n.Sel.Name {
					case "Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick":
						t.Errorf("%s: time.%s", fileSet.Position(n.Pos()), n.Sel.Name)
					}
				}
			}
			return true
		})
	}
}
