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
	var file []byte
	if path != "" {
		var err error
		if file, err = os.ReadFile(path); err != nil {
			return Config{}, fmt.Errorf("read configuration: %w", err)
		}
	}
	return Parse(path, file, settings...)
}

// Check is Load that also checks what the configuration names, by a function whose faults start
// with the path of a key like those of Validate.
func Check(path string, check func(Config) error, settings ...Setting) (Config, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return Config{}, fmt.Errorf("read configuration: %w", err)
	}
	cfg := Default()
	err = read(path, file, &cfg, func() error { return errors.Join(cfg.Validate(), check(cfg)) },
		settings...)
	if err != nil {
		return Config{}, err
	}
	return cfg, nil
}

// Reload is Load for the file of a running daemon. It refuses a file without any key: that is more
// probably a file that is being written than the wish for all defaults.
func Reload(path string, settings ...Setting) (Config, error) {
	if path != "" {
		file, err := os.ReadFile(path)
		if err != nil {
			return Config{}, fmt.Errorf("read configuration: %w", err)
		}
		var keys map[string]any
		if yaml.Unmarshal(file, &keys) == nil && len(keys) == 0 {
			return Config{}, fmt.Errorf("%s has no key; to run with all defaults, restart the "+
				"daemon", path)
		}
		return Parse(path, file, settings...)
	}
	return Load(path, settings...)
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
	return read(name, file, v, func() error { return (*v).Validate() }, settings...)
}

// read is Read with a function that validates the result.
func read[T any](name string, file []byte, v *T, validate func() error, settings ...Setting) error {
	root := reflect.ValueOf(v).Elem()
	d := &decoder{origin: name, root: root, places: make(map[string]string),
		inherits: map[string]string{}}
	d.file(file, root)
	for _, s := range settings {
		d.setting(s, root)
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
		d.faults = append(d.faults, fmt.Errorf("%s:%s", d.origin, syntaxFault(err)))
		return
	}
	d.decode(document.Content[0], "", root)
	if err := documents.Decode(&second); !errors.Is(err, io.EOF) {
		d.faults = append(d.faults, fmt.Errorf("%s contains a second YAML document; remove one",
			d.origin))
	}
}

// setting decodes a.b=v as the file {a: {b: v}}, so that the same rules apply.
func (d *decoder) setting(s Setting, root reflect.Value) {
	d.origin = s.Origin
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(s.Value), &document); err != nil {
		d.faults = append(d.faults, fmt.Errorf("%s: value %q:%s", s.Origin, s.Value,
			syntaxFault(err)))
		return
	}
	value := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str"} // an empty value is an empty string
	if len(document.Content) > 0 {
		value = document.Content[0]
	}
	withoutLines(value)
	keys := strings.Split(s.Path, ".")
	for i := len(keys) - 1; i >= 0; i-- {
		key := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: keys[i]}
		value = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{key, value}}
	}
	d.decode(value, "", root)
}

// syntaxFault turns "yaml: line 3: what" into "3: what", to follow the file's name and a colon.
func syntaxFault(err error) string {
	what := strings.TrimPrefix(err.Error(), "yaml:")
	return strings.TrimPrefix(what, " line ")
}

func withoutLines(n *yaml.Node) {
	n.Line = 0
	for _, child := range n.Content {
		withoutLines(child)
	}
}

// locate puts the origin of the value in front of each fault, found by the path with which the
// fault starts. A fault of a value that an entry inherits is left out, because it is reported where
// the value was written. One that an entry alone has, such as what its policy lacks, gets the place
// of the entry.
func (d *decoder) locate(err error) error {
	all := Faults(err)
	reported := map[string]bool{}
	for _, fault := range all {
		reported[fault.Error()] = true
	}
	var located []error
	for _, fault := range all {
		path, _, _ := strings.Cut(fault.Error(), " ")
		place := d.places[strings.TrimSuffix(path, ":")]
		if entry, inherited := d.inheritedBy(fault.Error()); place == "" && entry != "" {
			if reported[inherited] {
				continue
			}
			place = d.places[entry]
		}
		if place != "" {
			fault = fmt.Errorf("%s: %w", place, fault)
		}
		located = append(located, fault)
	}
	return errors.Join(located...)
}

// inheritedBy returns the entry of an overlay that a fault is about, and the text of the same fault
// in the section from which the entry inherits; empty: it is about none.
func (d *decoder) inheritedBy(fault string) (entry, inherited string) {
	for path, from := range d.inherits {
		if rest, is := strings.CutPrefix(fault, path+"."); is && len(path) > len(entry) {
			entry, inherited = path, join(from, rest)
		}
	}
	return entry, inherited
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
