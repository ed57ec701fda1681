package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/internal/yamlfault"
)

// Setting is one value that is set outside the file.
type Setting struct {
	Origin string // its name in messages, such as --listen
	Path   string
	Value  string // in YAML's syntax
}

// ParseSetting reads the key.path=value of a --set flag.
func ParseSetting(s string) (Setting, error) {
	path, value, ok := strings.Cut(s, "=")
	if !ok || path == "" {
		return Setting{}, fmt.Errorf("--set %s: write --set key.path=value", s)
	}
	return Setting{Origin: "--set " + path, Path: path, Value: value}, nil
}

// Load returns the defaults, changed by the file, if path is not empty, and then by the settings in
// their order. It validates the result. The error joins all faults.
func Load(path string, settings ...Setting) (Config, error) {
	return (&File{Path: path, Settings: settings}).Load()
}

// Check is Load that also checks what the configuration names, by a function whose faults start
// with the path of a key like those of Validate.
func Check(path string, check func(Config) error, settings ...Setting) (Config, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	cfg := Default()
	d := newDecoder(path, &cfg)
	err = d.read(file, func() error { return errors.Join(cfg.Validate(), check(cfg)) }, settings)
	if err != nil {
		return Config{}, err
	}
	return cfg, nil
}

// Reload is Load for the file of a running daemon. It refuses a file without any key: that is more
// probably a file that is being written than the wish for all defaults. It also refuses what is no
// regular file.
func Reload(path string, settings ...Setting) (Config, error) {
	return (&File{Path: path, Settings: settings}).Reload()
}

// Parse is Load for the content of a file; name is its name in messages.
func Parse(name string, file []byte, settings ...Setting) (Config, error) {
	cfg := Default()
	if err := Read(name, file, &cfg, settings...); err != nil {
		return Config{}, err
	}
	return cfg, nil
}

// Read changes v by the content of a file and then by the settings in their order, and validates
// the result. Keys are the yaml tags of struct fields, and an unknown key is a fault. Each fault
// starts with its place in the file. Those of Validate must start with the path of a key.
func Read[T interface{ Validate() error }](name string, file []byte, v *T,
	settings ...Setting) error {
	return newDecoder(name, v).read(file, func() error { return (*v).Validate() }, settings)
}

// newDecoder returns a decoder that changes v by a file of this name.
func newDecoder[T any](name string, v *T) *decoder {
	return &decoder{name: name, origin: name, root: reflect.ValueOf(v).Elem(),
		places: map[string]string{}, written: map[string]string{}, inherits: map[string]string{}}
}

// read is Read with a function that validates the result.
func (d *decoder) read(file []byte, validate func() error, settings []Setting) error {
	d.file(file, d.root)
	for _, s := range settings {
		d.setting(s, d.root)
	}
	d.final = true
	for _, decode := range d.overlays {
		decode()
	}
	// A value that could not be read keeps its default, so Validate reports it only if that is
	// wrong.
	return errors.Join(append(d.faults, d.locate(validate()))...)
}

func (d *decoder) file(file []byte, root reflect.Value) {
	documents := yaml.NewDecoder(bytes.NewReader(file))
	var document, second yaml.Node
	switch err := documents.Decode(&document); {
	case errors.Is(err, io.EOF):
		return
	case err != nil:
		d.syntaxFault(err, file)
		return
	}
	d.decode(document.Content[0], "", root)
	switch err := documents.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		d.syntaxFault(err, file)
	default:
		d.fault(&second, "a second YAML document begins here; remove one")
	}
}

func (d *decoder) syntaxFault(err error, file []byte) {
	line, what := yamlfault.Of(err, file)
	d.faults = append(d.faults, fmt.Errorf("%s:%d: %s", d.origin, line, what))
}

// around is the line of a section that nobody wrote: it is around a setting.
const around = -1

// setting decodes a.b=v as the file {a: {b: v}}, so that the same rules apply.
func (d *decoder) setting(s Setting, root reflect.Value) {
	d.origin = s.Origin
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(s.Value), &document); err != nil {
		_, what := yamlfault.Of(err, []byte(s.Value))
		d.faults = append(d.faults, fmt.Errorf("%s: value %q: %s", s.Origin, s.Value, what))
		return
	}
	value := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str"} // an empty value is an empty string
	if len(document.Content) > 0 {
		value = document.Content[0]
	}
	setLines(value, 0)
	keys := strings.Split(s.Path, ".")
	for i := len(keys) - 1; i >= 0; i-- {
		key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: keys[i]}
		value = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: around,
			Content: []*yaml.Node{key, value}}
	}
	d.decode(value, "", root)
}

func setLines(n *yaml.Node, line int) {
	n.Line = line
	for _, child := range n.Content {
		setLines(child, line)
	}
}

// Faults returns the errors of a joined error, such as Load's. If the joined error was wrapped, the
// prefix is added to each.
func Faults(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		// not joined, but wrapping several errors with a text of its own
		if errors.Join(joined.Unwrap()...).Error() != err.Error() {
			return []error{err}
		}
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, Faults(e)...)
		}
		return all
	}
	inner := errors.Unwrap(err)
	all := Faults(inner)
	if len(all) < 2 {
		return []error{err}
	}
	prefix, found := strings.CutSuffix(err.Error(), inner.Error())
	if !found {
		return []error{err}
	}
	for i, e := range all {
		all[i] = fmt.Errorf("%s%w", prefix, e)
	}
	return all
}
