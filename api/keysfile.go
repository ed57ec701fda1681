package api

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/internal/yamlfault"
)

// LoadKeys reads a keys file:
//
//	keys:
//	  - hash: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//	    tenant: research   # default: "default"
//	    role: user         # viewer, user (the default) or admin
//	    name: nightly-eval # for people only
//	    created: 2027-01-31
func LoadKeys(path string) (*Keyring, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read keys file: %w", err)
	}
	ring, err := parseKeysFile(text)
	if err != nil {
		return nil, fmt.Errorf("keys file %s:%w", path, err)
	}
	return ring, nil
}

// keysFile is the content of a keys file, as far as it could be read.
type keysFile struct {
	entries []fileEntry
	faults  []error // each begins with its line and a colon
}

type fileEntry struct {
	Hash   string `yaml:"hash"`
	Tenant string `yaml:"tenant"`
	Role   role   `yaml:"role"`
	// Name and Created are for people; no right depends on them.
	Name    string `yaml:"name"`
	Created string `yaml:"created"`

	line int
}

// parseKeysFile reads the text of a keys file. Each fault begins with its line and a colon. None
// quotes a hash, which may be a key that someone took for one.
func parseKeysFile(text []byte) (*Keyring, error) {
	var document yaml.Node
	err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&document)
	if err != nil && !errors.Is(err, io.EOF) {
		line, what := yamlfault.Of(err, text)
		return nil, fmt.Errorf("%d: %s", line, what)
	}
	var file keysFile
	if len(document.Content) > 0 && document.Content[0].Tag != "!!null" {
		file.read(document.Content[0])
	}
	ring := &Keyring{}
	for i, entry := range file.entries {
		if err := ring.addEntry(entry); err != nil {
			file.fault(entry.line, "keys[%d]: %w", i, err)
		}
	}
	if len(file.entries) == 0 && len(file.faults) == 0 {
		file.fault(1, "the file has no keys; list them under keys")
	}
	if len(file.faults) > 0 {
		return nil, errors.Join(file.faults...)
	}
	return ring, nil
}

func (f *keysFile) fault(line int, format string, args ...any) {
	f.faults = append(f.faults, fmt.Errorf("%d: "+format, append([]any{line}, args...)...))
}

func (f *keysFile) read(root *yaml.Node) {
	f.section(root, "the file", "it has the key keys, a list", func(key string, v *yaml.Node) bool {
		if key != "keys" {
			return false
		}
		if v.Kind != yaml.SequenceNode {
			if v.Tag != "!!null" {
				f.fault(v.Line, "keys is not a list; write a row with a dash for each key")
			}
			return true
		}
		for i, element := range v.Content {
			f.entry(i, element)
		}
		return true
	})
}

var entryKeys = []string{"hash", "tenant", "role", "name", "created"}

func (f *keysFile) entry(i int, n *yaml.Node) {
	before := len(f.faults)
	f.section(n, fmt.Sprintf("keys[%d]", i), "an entry has the keys "+
		strings.Join(entryKeys, ", "),
		func(key string, v *yaml.Node) bool {
			known := slices.Contains(entryKeys, key)
			if known && v.Kind != yaml.ScalarNode {
				f.fault(v.Line, "keys[%d].%s is not a text", i, key)
			}
			return known || key == "<<" // what the entry takes over from another
		})
	if len(f.faults) > before {
		return
	}
	entry := fileEntry{line: n.Line}
	if err := n.Decode(&entry); err != nil {
		f.fault(n.Line, "keys[%d] can't be read; write its hash, tenant and role as texts", i)
		return
	}
	f.entries = append(f.entries, entry)
}

// section calls take for each key of a section, which reports whether it knows the key.
func (f *keysFile) section(
	n *yaml.Node, name, hint string, take func(key string, value *yaml.Node) bool,
) {
	if n = resolved(n); n.Kind != yaml.MappingNode {
		f.fault(n.Line, "%s is not a section; %s", name, hint)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case seen[key.Value]:
			f.fault(key.Line, "%s has %s twice; remove one", name, key.Value)
		case !take(key.Value, resolved(n.Content[i+1])):
			f.fault(key.Line, "%s: unknown key %s; %s", name, key.Value, hint)
		}
		seen[key.Value] = true
	}
}

func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// addEntry adds a key of a file to the ring.
func (k *Keyring) addEntry(entry fileEntry) error {
	owner := principal{Tenant: entry.Tenant, Role: entry.Role}
	if owner.Tenant == "" {
		owner.Tenant = DefaultTenant
	}
	if owner.Role == "" {
		owner.Role = roleUser
	}
	hash, err := parseHash(entry.Hash)
	if err != nil {
		return err
	}
	if err := checkTenant(owner.Tenant); err != nil {
		return err
	}
	if !slices.Contains([]role{roleViewer, roleUser, roleAdmin}, owner.Role) {
		return fmt.Errorf("role %q is unknown; use viewer, user or admin", owner.Role)
	}
	return k.add(keyEntry{hash: hash, owner: owner, source: inKeysFile, title: entry.Name,
		created: entry.createdAt()})
}

// createdAt returns the time of the text Created, a date or RFC 3339; zero: it is neither.
func (e fileEntry) createdAt() time.Time {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, e.Created); err == nil {
			return at.UTC()
		}
	}
	return time.Time{}
}

func parseHash(text string) (hash keyHash, err error) {
	digits, ok := strings.CutPrefix(text, hashPrefix)
	raw, err := hex.DecodeString(digits)
	if !ok || err != nil || len(raw) != len(hash) {
		return hash, errors.New(
			`hash is not sha256: and 64 hex digits; make one with: printf %s "$KEY" | sha256sum`)
	}
	return keyHash(raw), nil
}

// NewKey is what a key is made with. Empty fields have their defaults.
type NewKey struct{ Name, Tenant, Role string }

// KeyRow returns the row of a key for a keys file.
func KeyRow(key string, of NewKey) (string, error) {
	entry := fileEntry{Hash: HashKey(key), Tenant: of.Tenant, Role: role(of.Role), Name: of.Name}
	if err := new(Keyring).addEntry(entry); err != nil {
		return "", fmt.Errorf("make a row of a keys file: %w", err)
	}
	row := fmt.Sprintf("- {hash: %q", entry.Hash)
	for _, field := range []struct{ name, value string }{{"tenant", of.Tenant}, {"role", of.Role},
		{"name", of.Name}, {"created", time.Now().UTC().Format(time.DateOnly)}} {
		if field.value != "" {
			row += fmt.Sprintf(", %s: %q", field.name, field.value)
		}
	}
	return row + "}", nil
}
