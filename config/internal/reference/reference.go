// Package reference writes the page about every configuration key: its type and default from the types themselves, its
// meaning from the doc comments in the source.
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
	"strings"

	"github.com/tidefill/tidefill/config"
)

const module = "github.com/tidefill/tidefill/"

const introduction = `# Configuration

<!-- Written by "go generate ./config" from the source. Edit the doc comments there. -->

One YAML file, given with ` + "`--config`" + `; every key has a default, so the file says only what differs. A single value can be given
beside it, on any command that reads the configuration, as ` + "`--set key.path=value`" + ` in YAML's syntax, lists included:
` + "`--set 'upstreams=[{url: http://gpu-1:8000}]'`" + `. Flags win over ` + "`--set`" + `, which wins over the file.

Unknown keys and values that can't be read refuse to start. ` + "`tidefill check FILE.yaml`" + ` reports all faults of a file, and prints the
configuration that results from it. Durations are written ` + "`500ms`, `30s`, `1h30m` or `7d`" + `. Secrets never stand in the file: keys
ending in ` + "`_env`" + ` name the environment variable that holds one.
`

// Page renders the page from the module's source below root.
func Page(root string) ([]byte, error) {
	source := source{root: root, packages: make(map[string]map[string]*ast.TypeSpec)}
	var page bytes.Buffer
	page.WriteString(introduction)

	section := "\x00"
	for _, key := range config.Keys() {
		doc, err := source.field(key.Struct, key.Field)
		if err != nil {
			return nil, err
		}
		if isTable(key.Type) {
			if doc == "" {
				if doc, err = source.structDoc(element(key.Type)); err != nil {
					return nil, err
				}
			}
			section = key.Path
			fmt.Fprintf(&page, "\n## %s\n\n%s\n\n%s", heading(key), doc, tableHead)
			continue
		}
		parent := key.Path[:max(0, strings.LastIndex(key.Path, "."))]
		if parent != section && !strings.HasPrefix(parent, section+"[]") && !strings.HasPrefix(parent, section+".<") {
			if section = parent; section == "" {
				fmt.Fprintf(&page, "\n## Top level\n\n%s", tableHead)
			} else {
				fmt.Fprintf(&page, "\n## %s, continued\n\n%s", section, tableHead)
			}
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n",
			key.Path, typeName(key.Type), shownDefault(key.Default), strings.ReplaceAll(doc, "|", "\\|"))
	}
	return page.Bytes(), nil
}

const tableHead = "| Key | Type | Default | Meaning |\n| --- | --- | --- | --- |\n"

func isTable(t reflect.Type) bool { return config.IsSection(element(t)) }

// element is the type that lists and maps hold, through pointers.
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
}

// link is a reference to a Go name in a doc comment, which means nothing to readers of the page but its last word.
var link = regexp.MustCompile(`\[(?:\w+\.)*(\w+)\]`)

func prose(groups ...*ast.CommentGroup) string {
	for _, g := range groups {
		if text := strings.Join(strings.Fields(g.Text()), " "); text != "" {
			return link.ReplaceAllString(text, "$1")
		}
	}
	return ""
}

// field returns what the source says about a struct's field.
func (s *source) field(t reflect.Type, name string) (string, error) {
	spec, err := s.typeSpec(t)
	if err != nil {
		return "", err
	}
	fields, ok := spec.Type.(*ast.StructType)
	if !ok {
		return "", fmt.Errorf("%s is no struct in the source", t)
	}
	for _, f := range fields.Fields.List {
		for _, n := range f.Names {
			if n.Name == name {
				return withoutName(prose(f.Doc, f.Comment), name), nil
			}
		}
	}
	return "", fmt.Errorf("%s has no field %s in the source", t, name)
}

func (s *source) structDoc(t reflect.Type) (string, error) {
	spec, err := s.typeSpec(t)
	if err != nil {
		return "", err
	}
	return withoutName(prose(spec.Doc, spec.Comment), t.Name()), nil
}

// withoutName turns "Drain is the time …" into "The time …": the key stands beside it already.
func withoutName(doc, name string) string {
	for _, verb := range []string{" is ", " are ", " says "} {
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
		file, err := parser.ParseFile(set, name, nil, parser.ParseComments|parser.SkipObjectResolution)
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
