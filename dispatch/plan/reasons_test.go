package plan

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// declaredReasons returns the values of all constants of a type Reason in the sources.
func declaredReasons(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{} // where, by value
	for _, root := range []string{".", "../../flowcontrol"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") ||
				strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				spec, ok := n.(*ast.ValueSpec)
				if !ok || len(spec.Values) != 1 || !isReason(spec.Type) {
					return true
				}
				if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
					value, _ := strconv.Unquote(literal.Value)
					found[value] = path
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func isReason(of ast.Expr) bool {
	switch of := of.(type) {
	case *ast.Ident:
		return of.Name == "Reason"
	case *ast.SelectorExpr:
		return of.Sel.Name == "Reason"
	}
	return false
}

func TestEveryReasonIsExplained(t *testing.T) {
	declared := declaredReasons(t)
	if len(declared) < 25 {
		t.Fatalf("only %d reasons found", len(declared))
	}
	for reason, path := range declared {
		if reason != "" && Explain(Reason(reason)).Meaning == "" {
			t.Errorf("%q of %s has no entry in Explanations", reason, path)
		}
	}
	seen := map[Reason]bool{}
	for _, e := range Explanations() {
		if declared[string(e.Reason)] == "" && e.Reason != "flowing" && e.Reason != "none" {
			t.Errorf("nothing declares the explained reason %q", e.Reason)
		}
		if seen[e.Reason] {
			t.Errorf("%q is explained twice", e.Reason)
		}
		seen[e.Reason] = true
	}
}

// The table of docs/metrics.md is that of the program. `go test ./dispatch/plan -update` writes it.
func TestReasonsAreDocumented(t *testing.T) {
	const path = "../../docs/metrics.md"
	const begin, end = "<!-- reasons -->\n", "<!-- end of reasons -->"
	var table strings.Builder
	table.WriteString("\n| Reason | Meaning | What to do |\n| --- | --- | --- |\n")
	for _, e := range Explanations() {
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", e.Reason, e.Meaning, e.Remedy)
	}
	table.WriteString("\n")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), begin)
	got, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no %q and %q", path, begin, end)
	}
	if got == table.String() {
		return
	}
	if !*update {
		t.Fatalf("%s has another table; run go test ./dispatch/plan -update", path)
	}
	if err := os.WriteFile(path, []byte(before+begin+table.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
