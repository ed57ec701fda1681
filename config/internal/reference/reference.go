// Package reference renders the page about the configuration keys, with types and defaults from the
// Go types and meanings from the doc comments in the source.
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

const introduction = `# Configuration

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

Change a key in a block called ` + "`tuning`" + ` only for a reason that you have measured: with
` + "`tidefill simulate`" + ` for what decides about batch lines, and with
[` + "`tidefill tune`" + `](tune-a-policy.md) to search for a value. The settings of a policy apply while that
policy is selected.
`

// Page renders the page about the configuration from the module's source below root.
func Page(root string) ([]byte, error) {
	keys := config.Keys()
	p := page{source: source{root: root, packages: make(map[string]map[string]*ast.TypeSpec),
		names: namesOf(keys)}, sections: []*section{{heading: "Top level"}},
		described: map[reflect.Type]*section{}}
	p.byPath = map[string]*section{"": p.sections[0]}
	for _, key := range keys {
		if err := p.add(key); err != nil {
			return nil, err
		}
	}
	out := bytes.NewBufferString(introduction)
	for _, s := range p.sections {
		s.write(out)
	}
	return out.Bytes(), nil
}

// page is a page while it is rendered.
type page struct {
	source    source
	sections  []*section
	byPath    map[string]*section
	described map[reflect.Type]*section // by the type of their keys
}

// add adds a key to its section, or a section for the key's own keys.
func (p *page) add(key config.Key) (err error) {
	parent := p.byPath[key.Path[:max(0, strings.LastIndex(key.Path, "."))]]
	if parent == nil {
		return nil // it belongs to a section that another one describes
	}
	if parent.like != "" {
		parent.names = append(parent.names, key.Path[strings.LastIndex(key.Path, ".")+1:])
		return nil
	}
	doc := ""
	if key.Struct != nil { // else the key is the name of an implementation, such as a policy
		if doc, err = p.source.field(key.Struct, key.Field); err != nil {
			return err
		}
	}
	if isTable(key.Type) && !key.Value {
		if doc == "" {
			if doc, err = p.source.structDoc(element(key.Type)); err != nil {
				return err
			}
		}
		s := &section{heading: heading(key), path: key.Path + suffix(key.Type), doc: doc,
			like: key.Like, restart: key.NeedsRestart()}
		if first := p.described[element(key.Type)]; first == nil {
			p.described[element(key.Type)] = s
		} else if key.Type.Kind() != reflect.Map { // whose keys are those around it
			s.like = first.path
		}
		if s.like != "" {
			s.target = p.byPath[s.like]
		}
		p.sections = append(p.sections, s)
		p.byPath[s.path] = s
		return nil
	}
	if key.NeedsRestart() {
		doc += " Needs a restart."
	}
	parent.rows = append(parent.rows, fmt.Sprintf("| `%s` | %s | %s | %s |", key.Path,
		typeName(key.Type), shownDefault(key), strings.ReplaceAll(doc, "|", "\\|")))
	return nil
}

// section is a table of keys with a description.
type section struct {
	heading, path, doc string
	rows               []string
	// like is the path of the section that describes the keys, target that section, and names are
	// the keys. Empty: rows describe them.
	like    string
	target  *section
	names   []string
	restart bool
}

func (s *section) write(page *bytes.Buffer) {
	fmt.Fprintf(page, "\n## %s\n", s.heading)
	if s.doc != "" {
		fmt.Fprintf(page, "\n%s\n", s.doc)
	}
	if s.like != "" {
		fmt.Fprintf(page, "\nKeys, as in [`%s`](#%s): `%s`.", s.like, anchor(s.target.heading),
			strings.Join(s.names, "`, `"))
		if s.restart {
			fmt.Fprint(page, " They need a restart.")
		}
		fmt.Fprintln(page)
	}
	if len(s.rows) > 0 {
		fmt.Fprintf(page, "\n| Key | Type | Default | Meaning |\n| --- | --- | --- | --- |\n%s\n",
			strings.Join(s.rows, "\n"))
	}
}

// anchor returns the anchor that forges give to a heading.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '-':
			return r
		case r == ' ':
			return '-'
		}
		return -1
	}, strings.ToLower(heading))
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
	case t.Kind() == reflect.Struct:
		return "map to number"
	}
	return "integer"
}

func shownDefault(key config.Key) string {
	v := key.Default
	if v.IsValid() && key.Value && v.IsZero() {
		return "none"
	}
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
