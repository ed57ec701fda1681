package tidefill_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each part of dispatch owns its state: a mutex is locked in the file that declares its struct, and
// a function field is set when its struct is constructed.
func TestPartsOfDispatchOwnTheirState(t *testing.T) {
	l := newLoader(os.ReadFile)
	for dir := range dirsOf(sources(t, "dispatch")) {
		files, err := filepath.Glob(dir + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		files = slices.DeleteFunc(files, func(f string) bool {
			return strings.HasSuffix(f, "_test.go")
		})
		l.files[module+dir] = files
	}
	for _, fault := range l.faults(t) {
		t.Error(fault)
	}
	if l.mutexes < 10 || l.functions < 10 { // or the check has become blind
		t.Errorf("found %d mutexes and %d function fields", l.mutexes, l.functions)
	}
}

func TestOwnershipIsChecked(t *testing.T) {
	source := map[string]string{
		"a/box.go": `package a
import ("sync"; "m/b")
type box struct { mu sync.Mutex; call func(); on b.Hook; other int }
func (x *box) lock() { x.mu.Lock(); x.other = 1 }
func (x *box) make() *box { return &box{call: x.lock} }
func (x *box) complete() { if x.call == nil { x.call = x.lock } }`,
		"a/user.go": `package a
func (x *box) use() { x.mu.Lock() }
func wire(x *box) { x.call = x.lock; x.other, x.on = 2, nil }`,
		"b/hook.go": `package b
type Hook func()`,
	}
	l := newLoader(func(name string) ([]byte, error) { return []byte(source[name]), nil })
	l.files = map[string][]string{"m/a": {"a/box.go", "a/user.go"}, "m/b": {"b/hook.go"}}
	want := []string{
		"a/user.go:2: mu is locked, which a/box.go declares",
		"a/user.go:3: call is assigned, a function field, after construction",
		"a/user.go:3: on is assigned, a function field, after construction",
	}
	if got := l.faults(t); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// dirsOf returns the directories of files.
func dirsOf(files map[string]*ast.File) map[string]bool {
	dirs := map[string]bool{}
	for name := range files {
		dirs[path.Dir(name)] = true
	}
	return dirs
}

// loader checks packages with the types of each other. It knows nothing of all other packages, and
// ignores what that makes wrong.
type loader struct {
	read     func(name string) ([]byte, error)
	files    map[string][]string // by import path
	set      *token.FileSet
	packages map[string]*types.Package
	syntax   []*ast.File
	info     types.Info
	// mutex holds the positions of fields that are mutexes.
	mutex              map[token.Pos]bool
	mutexes, functions int
}

func newLoader(read func(name string) ([]byte, error)) *loader {
	return &loader{read: read, files: map[string][]string{}, set: token.NewFileSet(),
		packages: map[string]*types.Package{}, mutex: map[token.Pos]bool{},
		info: types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{},
			Defs: map[*ast.Ident]types.Object{}}}
}

// Import implements [types.Importer].
func (l *loader) Import(name string) (*types.Package, error) {
	if p := l.packages[name]; p != nil {
		return p, nil
	}
	if _, ours := l.files[name]; !ours {
		p := types.NewPackage(name, path.Base(name))
		p.MarkComplete()
		l.packages[name] = p
		return p, nil
	}
	var files []*ast.File
	for _, f := range l.files[name] {
		source, err := l.read(f)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(l.set, f, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	config := types.Config{Importer: l, Error: func(error) {}}
	p, _ := config.Check(name, l.set, files, &l.info)
	l.packages[name] = p
	l.syntax = append(l.syntax, files...)
	return p, nil
}

// faults returns what parts do to the state of others, sorted.
func (l *loader) faults(t *testing.T) (faults []string) {
	t.Helper()
	for name := range l.files {
		if _, err := l.Import(name); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range l.syntax {
		ast.Inspect(file, func(n ast.Node) bool {
			if s, is := n.(*ast.StructType); is {
				l.count(s)
			}
			return true
		})
	}
	for _, file := range l.syntax {
		var path []ast.Node
		ast.Inspect(file, func(n ast.Node) bool {
			if n == nil {
				path = path[:len(path)-1]
				return true
			}
			path = append(path, n)
			switch n := n.(type) {
			case *ast.CallExpr:
				faults = append(faults, l.locked(n)...)
			case *ast.AssignStmt:
				faults = append(faults, l.assigned(n, path)...)
			}
			return true
		})
	}
	slices.Sort(faults)
	return faults
}

// count notes which fields of a struct are mutexes, and counts those that are functions.
func (l *loader) count(s *ast.StructType) {
	for _, f := range s.Fields.List {
		of, is := f.Type.(*ast.SelectorExpr)
		is = is && types.ExprString(of.X) == "sync" && strings.HasSuffix(of.Sel.Name, "Mutex")
		for _, name := range f.Names {
			if is {
				l.mutex[name.Pos()] = true
				l.mutexes++
			}
			if isFunction(l.info.Defs[name]) {
				l.functions++
			}
		}
	}
}

func isFunction(field types.Object) bool {
	if field == nil {
		return false
	}
	_, is := field.Type().Underlying().(*types.Signature)
	return is
}

// field returns the field that an expression selects; nil: none.
func (l *loader) field(x ast.Expr) types.Object {
	selector, is := ast.Unparen(x).(*ast.SelectorExpr)
	if !is {
		return nil
	}
	if s := l.info.Selections[selector]; s != nil && s.Kind() == types.FieldVal {
		return s.Obj()
	}
	return nil
}

// locked returns a fault if a call locks the mutex of a struct of another file.
func (l *loader) locked(call *ast.CallExpr) []string {
	method, is := call.Fun.(*ast.SelectorExpr)
	if !is || !strings.HasSuffix(method.Sel.Name, "Lock") {
		return nil
	}
	mutex := l.field(method.X)
	if mutex == nil || !l.mutex[mutex.Pos()] {
		return nil
	}
	at, declared := l.set.Position(call.Pos()), l.set.Position(mutex.Pos())
	if at.Filename == declared.Filename {
		return nil
	}
	return []string{fmt.Sprintf("%s:%d: %s is locked, which %s declares", at.Filename, at.Line,
		mutex.Name(), declared.Filename)}
}

// assigned returns a fault for each function field that an assignment sets. The default of one that
// is nil may be set.
func (l *loader) assigned(a *ast.AssignStmt, path []ast.Node) (faults []string) {
	for _, left := range a.Lhs {
		if field := l.field(left); isFunction(field) && !isDefault(left, path) {
			at := l.set.Position(a.Pos())
			faults = append(faults, fmt.Sprintf(
				"%s:%d: %s is assigned, a function field, after construction", at.Filename, at.Line,
				field.Name()))
		}
	}
	return faults
}

// isDefault reports whether the assignment at the end of a path is made if what is left of it is
// nil.
func isDefault(left ast.Expr, path []ast.Node) bool {
	if len(path) < 3 {
		return false
	}
	is, ok := path[len(path)-3].(*ast.IfStmt)
	return ok && types.ExprString(is.Cond) == types.ExprString(left)+" == nil"
}
