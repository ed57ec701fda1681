package api

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// KeysVariable names the environment variable that holds keys in clear text, for ParseKeys.
const KeysVariable = "TIDEFILL_API_KEYS"

// AuthConfig configures API keys, besides those of the environment.
type AuthConfig struct {
	// KeysFile is the path of a file of hashed keys with their tenants and roles; docs/api.md has
	// an example. Empty: none.
	KeysFile string `yaml:"keys_file"`
}

// Keyring holds the hashes of the API keys. A nil Keyring is empty: requests need no key and belong
// to DefaultTenant.
type Keyring struct {
	keys []keyEntry
}

type keyEntry struct {
	hash  [sha256.Size]byte
	owner principal
	life  *keyLifetime
}

// Empty reports whether there are no keys, so that requests need none.
func (k *Keyring) Empty() bool { return k == nil || len(k.keys) == 0 }

// severalTenants reports whether there are keys of more than one tenant.
func (k *Keyring) severalTenants() bool {
	return k != nil && slices.ContainsFunc(k.keys, func(e keyEntry) bool {
		return e.owner.Tenant != k.keys[0].owner.Tenant
	})
}

// find returns the entry of a key. It compares with every hash, each in constant time, so that its
// duration reveals nothing about the keys.
func (k *Keyring) find(key string) (e keyEntry, ok bool) {
	hash := sha256.Sum256([]byte(key))
	found := -1
	for i := range k.keys {
		same := subtle.ConstantTimeCompare(hash[:], k.keys[i].hash[:])
		found = subtle.ConstantTimeSelect(same, i, found)
	}
	if found < 0 {
		return keyEntry{}, false
	}
	return k.keys[found], true
}

// Join returns a keyring with the keys of both; the same key in both is an error.
func (k *Keyring) Join(other *Keyring) (*Keyring, error) {
	joined := &Keyring{}
	for _, ring := range []*Keyring{k, other} {
		if ring == nil {
			continue
		}
		for _, e := range ring.keys {
			if err := joined.add(e); err != nil {
				return nil, err
			}
		}
	}
	return joined, nil
}

func (k *Keyring) add(e keyEntry) error {
	if i := slices.IndexFunc(k.keys, func(have keyEntry) bool {
		return have.hash == e.hash
	}); i >= 0 {
		return fmt.Errorf(
			"the same key has the tenants %s and %s; give each tenant its own",
			k.keys[i].owner.Tenant, e.owner.Tenant)
	}
	if e.life == nil {
		e.life = newKeyLifetime()
	}
	k.keys = append(k.keys, e)
	return nil
}

// ParseKeys reads the value of TIDEFILL_API_KEYS, a comma-separated list of `key` or `tenant=key`.
// The keys have the role user. Errors contain the position in the list, never a key.
func ParseKeys(list string) (*Keyring, error) {
	ring := &Keyring{}
	for i, item := range strings.Split(list, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		tenant, key, named := strings.Cut(item, "=")
		if !named {
			tenant, key = DefaultTenant, item
		}
		err := checkTenant(tenant)
		switch {
		case err != nil:
			err = errors.New(
				"the text before '=' is not the name of a tenant; write key or tenant=key")
		case key == "" || key[0] == '=' || strings.ContainsAny(key, " \t\r\n"):
			err = errors.New(
				"the key is empty, contains a space, or ends in '=' without a tenant; write key " +
					"or tenant=key")
		default:
			err = ring.add(keyEntry{hash: sha256.Sum256([]byte(key)), owner: principal{
				tenant, roleUser}})
		}
		if err != nil {
			return nil, fmt.Errorf("%s, item %d: %w", KeysVariable, i+1, err)
		}
	}
	return ring, nil
}

const hashPrefix = "sha256:"

// HashKey returns the hash of a key for a keys file. In a shell:
//
//	printf %s "$KEY" | sha256sum
//
// Keys are long and random (openssl rand -hex 24), so neither a salt nor a slow hash is needed.
func HashKey(key string) string {
	hash := sha256.Sum256([]byte(key))
	return hashPrefix + hex.EncodeToString(hash[:])
}

// LoadKeys reads a keys file:
//
//	keys:
//	  - hash: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//	    tenant: research   # default: "default"
//	    role: user         # viewer, user (the default) or admin
func LoadKeys(path string) (*Keyring, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read keys file: %w", err)
	}
	ring, err := parseKeysFile(text)
	if err != nil {
		return nil, fmt.Errorf("keys file %s: %w", path, err)
	}
	return ring, nil
}

func parseKeysFile(text []byte) (*Keyring, error) {
	var file struct {
		Keys []struct {
			Hash   string `yaml:"hash"`
			Tenant string `yaml:"tenant"`
			Role   role   `yaml:"role"`
		} `yaml:"keys"`
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil && err != io.EOF {
		return nil, err
	}
	ring := &Keyring{}
	var faults []error
	for i, entry := range file.Keys {
		owner := principal{Tenant: entry.Tenant, Role: entry.Role}
		if owner.Tenant == "" {
			owner.Tenant = DefaultTenant
		}
		if owner.Role == "" {
			owner.Role = roleUser
		}
		hash, err := parseHash(entry.Hash)
		if err == nil {
			err = checkTenant(owner.Tenant)
		}
		if err == nil && !slices.Contains([]role{roleViewer, roleUser, roleAdmin}, owner.Role) {
			err = fmt.Errorf("role %q is unknown; use viewer, user or admin", owner.Role)
		}
		if err == nil {
			err = ring.add(keyEntry{hash: hash, owner: owner})
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("keys[%d]: %w", i, err))
		}
	}
	if len(file.Keys) == 0 {
		faults = append(faults, errors.New("the file has no keys; list them under keys"))
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return ring, nil
}

func parseHash(text string) (hash [sha256.Size]byte, err error) {
	digits, ok := strings.CutPrefix(text, hashPrefix)
	raw, err := hex.DecodeString(digits)
	if !ok || err != nil || len(raw) != len(hash) {
		return hash, errors.New(
			`hash is not sha256: and 64 hex digits; make one with: printf %s "$KEY" | sha256sum`)
	}
	return [sha256.Size]byte(raw), nil
}

var tenantName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func checkTenant(name string) error {
	if !tenantName.MatchString(name) {
		return fmt.Errorf("tenant %q is not a name of up to 64 letters, digits, '.', '_' and '-'",
			name)
	}
	return nil
}
