// Package reference renders the pages about the configuration keys, with types and defaults from
// the Go types and meanings from the doc comments in the source.
package reference

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/tidefill/tidefill/config"
)

const module = "github.com/tidefill/tidefill/"

const configurationIntroduction = `# Configuration

<!-- Written by "go generate ./config" from the source. Edit the doc comments there. -->

One YAML file, given with ` + "`--config`" + `; every key has a default, so the file holds only what
differs. A single value can be given beside it, on any command that reads the configuration, as
` + "`--set key.path=value`" + ` in YAML's syntax, lists included:
` + "`--set 'upstreams=[{url: http://gpu-1:8000}]'`" + `. Flags win over ` + "`--set`" + `, which
wins over the file.

Unknown keys and values that cannot be read are errors: the daemon does not start.
` + "`tidefill check FILE.yaml`" + ` reports all faults of a file, and prints the configuration that
results from it. A running daemon applies changes of the file by itself, but for keys that say so
([reload](operations.md#reload-the-configuration)). Durations are written ` + "`500ms`, `30s`, `1h30m` or `7d`" + `. The file never
holds secrets: keys ending in ` + "`_env`" + ` name the environment variable that holds one.

These are the keys that an operator sets. [tuning.md](tuning.md) has the others: the settings of each
policy of flow control, and the constants of the program, which are in blocks called ` + "`tuning`" + `.
`

const tuningIntroduction = `# Tuning

<!-- Written by "go generate ./config" from the source. Edit the doc comments there. -->

The settings of policies, and the constants of the program, which are keys in blocks called
` + "`tuning`" + `. Their defaults suit every pool we know of; change one only for a reason that you
have measured: with ` + "`tidefill simulate`" + ` for what decides about batch lines, and with
` + "`tidefill tune`" + ` to search for a value. [configuration.md](configuration.md) has the keys
that an operator sets and the syntax of the file.

# Policies of flow control

Each policy has settings of its own, below its name. They apply while ` + "`flowcontrol.policy`" + `
selects it.
`

const constantsIntroduction = `
# Constants of the program
`

// Pages returns what renders each page from the module's source below a root, by file name.
func Pages() map[string]func(root string) ([]byte, error) {
	return map[string]func(string) ([]byte, error){
		"configuration.md": configuration, "tuning.md": tuning,
	}
}

// configuration renders the page about the keys that an operator sets, from the module's source
// below root.
func configuration(root string) ([]byte, error) {
	page := bytes.NewBufferString(configurationIntroduction)
	err := render(page, root, config.Keys(),
		func(key config.Key) bool { return !key.Tuning() && !key.Policy })
	return page.Bytes(), err
}

// tuning renders the page about all other keys.
func tuning(root string) ([]byte, error) {
	page := bytes.NewBufferString(tuningIntroduction)
	if err := render(page, root, config.Keys(),
		func(key config.Key) bool { return key.Policy }); err != nil {
		return nil, err
	}
	page.WriteString(constantsIntroduction)
	if err := render(page, root, config.Keys(),
		func(key config.Key) bool { return key.Tuning() && !key.Policy }); err != nil {
		return nil, err
	}
	return page.Bytes(), nil
}

// render appends a section for each table of keys, with those of its keys that are wanted.
func render(
	page *bytes.Buffer, root string, keys []config.Key, want func(config.Key) bool,
) (err error) {
	source := source{root: root, packages: make(map[string]map[string]*ast.TypeSpec),
		names: namesOf(keys)}
	sections := []*section{{heading: "Top level"}}
	byPath := map[string]*section{"": sections[0]}
	for _, key := range keys {
		parent := byPath[key.Path[:max(0, strings.LastIndex(key.Path, "."))]]
		if !want(key) {
			if parent != nil {
				parent.elsewhere = true
			}
			continue
		}
		doc := ""
		if key.Struct != nil { // else the key is the name of an implementation, such as a policy
			if doc, err = source.field(key.Struct, key.Field); err != nil {
				return err
			}
		}
		if isTable(key.Type) {
			if doc == "" {
				if doc, err = source.structDoc(element(key.Type)); err != nil {
					return err
				}
			}
			s := &section{heading: heading(key), doc: doc}
			sections = append(sections, s)
			byPath[key.Path+suffix(key.Type)] = s
			continue
		}
		if key.NeedsRestart() {
			doc += " Needs a restart."
		}
		parent.rows = append(parent.rows, fmt.Sprintf("| `%s` | %s | %s | %s |",
			key.Path, typeName(key.Type), shownDefault(key.Default), strings.ReplaceAll(
				doc, "|", "\\|")))
	}
	for i, s := range sections {
		nested := i+1 < len(sections) && strings.HasPrefix(sections[i+1].heading, s.heading+".")
		if len(s.rows) > 0 || nested || !s.elsewhere && s.doc != "" {
			s.write(page)
		}
	}
	return nil
}

// section is a table of keys with a description.
type section struct {
	heading, doc string
	rows         []string
	elsewhere    bool // keys of it are on the other page
}

func (s *section) write(page *bytes.Buffer) {
	fmt.Fprintf(page, "\n## %s\n", s.heading)
	if s.doc != "" {
		fmt.Fprintf(page, "\n%s\n", s.doc)
	}
	if len(s.rows) > 0 {
		fmt.Fprintf(page, "\n| Key | Type | Default | Meaning |\n| --- | --- | --- | --- |\n%s\n",
			strings.Join(s.rows, "\n"))
	}
}

func isTable(t reflect.Type) bool { return config.IsSection(element(t)) }

// element returns the type of the elements of a list or map, through pointers.
func element(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

func heading(key config.Key) string {
	switch key.Type.Kind() {
	case reflect.Slice:
		return key.Path + " (a list)"
	case reflect.Map:
		return key.Path + " (by name)"
	}
	return key.Path
}

// suffix returns the text between the path of a table and those of its keys.
func suffix(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return "[]"
	case reflect.Map:
		return ".<name>"
	}
	return ""
}

func typeName(t reflect.Type) string {
	switch {
	case t.PkgPath() == "time" && t.Name() == "Duration":
		return "duration"
	case t.Kind() == reflect.Slice:
		return "list of " + typeName(t.Elem())
	case t.Kind() == reflect.Map:
		return "map to " + typeName(t.Elem())
	case t.Kind() == reflect.Pointer:
		return typeName(t.Elem())
	case t.Kind() == reflect.String || config.IsText(t):
		return "text"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64:
		return "number"
	case t.Kind() == reflect.Interface:
		return "any"
	}
	return "integer"
}

func shownDefault(v reflect.Value) string {
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return ""
	}
	text := config.FormatValue(v)
	if text == "" || text == `""` || text == "[]" || text == "{}" || text == "null" {
		return "none"
	}
	return "`" + text + "`"
}

// source finds doc comments in the module's packages.
type source struct {
	root     string
	packages map[string]map[string]*ast.TypeSpec // by import path, by type name
	names    *strings.Replacer
}

// namesOf returns a replacer of Go field names by keys in doc comments. It leaves out names of one
// word, which could be that word.
func namesOf(keys []config.Key) *strings.Replacer {
	var pairs []string
	for _, key := range keys {
		if key.Field == "" {
			continue
		}
		name := "`" + key.Path[strings.LastIndex(key.Path, ".")+1:] + "`"
		pairs = append(pairs, "Config."+key.Field, name)
		if strings.IndexFunc(key.Field[1:], unicode.IsUpper) >= 0 &&
			strings.ToUpper(key.Field) != key.Field {
			pairs = append(pairs, key.Field, name)
		}
	}
	return strings.NewReplacer(pairs...)
}

// link matches a reference to a Go name in a doc comment. The page shows its last word.
var link = regexp.MustCompile(`\[(?:\w+\.)*(\w+)\]`)

func prose(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if text := strings.Join(strings.Fields(g.Text()), " "); text != "" {
			return link.ReplaceAllString(text, "$1")
		}
	}
	return ""
}

// field returns the doc comment of a struct's field.
func (s *source) field(t reflect.Type, name string) (string, error) {
	spec, err := s.typeSpec(t)
	if err != nil {
		return "", err
	}
	fields, ok := spec.Type.(*ast.StructType)
	if !ok {
		return "", fmt.Errorf("%s is not a struct in the source", t)
	}
	for _, f := range fields.Fields.List {
		if slices.Contains(namesOfField(f), name) {
			return s.names.Replace(withoutName(prose(f.Doc, f.Comment), name)), nil
		}
	}
	return "", fmt.Errorf("%s has no field %s in the source", t, name)
}

// namesOfField returns the names that a field declares; an embedded one has that of its type.
func namesOfField(f *ast.Field) []string {
	if len(f.Names) > 0 {
		var names []string
		for _, n := range f.Names {
			names = append(names, n.Name)
		}
		return names
	}
	switch t := f.Type.(type) {
	case *ast.Ident:
		return []string{t.Name}
	case *ast.SelectorExpr:
		return []string{t.Sel.Name}
	}
	return nil
}

func (s *source) structDoc(t reflect.Type) (string, error) {
	spec, err := s.typeSpec(t)
	if err != nil {
		return "", err
	}
	return withoutName(prose(spec.Doc, spec.Comment), t.Name()), nil
}

// withoutName turns "Drain is the time …" into "The time …": the key is in the column before.
func withoutName(doc, name string) string {
	for _, verb := range []string{" is ", " are ", " holds "} {
		if rest, ok := strings.CutPrefix(doc, name+verb); ok && rest != "" {
			return strings.ToUpper(rest[:1]) + rest[1:]
		}
	}
	if rest, ok := strings.CutPrefix(doc, name+" "); ok && rest != "" {
		return strings.ToUpper(rest[:1]) + rest[1:]
	}
	if doc != "" {
		doc = strings.ToUpper(doc[:1]) + doc[1:]
	}
	return doc
}

func (s *source) typeSpec(t reflect.Type) (*ast.TypeSpec, error) {
	types, ok := s.packages[t.PkgPath()]
	if !ok {
		var err error
		if types, err = s.parse(t.PkgPath()); err != nil {
			return nil, err
		}
		s.packages[t.PkgPath()] = types
	}
	spec, ok := types[t.Name()]
	if !ok {
		return nil, fmt.Errorf("no type %s in the source of %s", t.Name(), t.PkgPath())
	}
	return spec, nil
}

func (s *source) parse(importPath string) (map[string]*ast.TypeSpec, error) {
	dir := filepath.Join(s.root, strings.TrimPrefix(importPath, module))
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("source of %s in %s: %w", importPath, dir, fs.ErrNotExist)
	}
	types := make(map[string]*ast.TypeSpec)
	set := token.NewFileSet()
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil,
			parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		for _, declaration := range file.Decls {
			general, ok := declaration.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range general.Specs {
				if spec, ok := s.(*ast.TypeSpec); ok {
					if spec.Doc == nil {
						spec.Doc = general.Doc
					}
					types[spec.Name.Name] = spec
				}
			}
		}
	}
	return types, nil
}
