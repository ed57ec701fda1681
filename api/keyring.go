package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/internal/humanize"
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
	hash  keyHash
	owner principal
	life  *keyLifetime

	source  keySource
	title   string    // for people only; empty: none
	created time.Time // as well; zero: not known
}

// keySource is where a key is configured.
type keySource string

const (
	inKeysFile    keySource = "keys_file"
	inEnvironment keySource = "environment"
)

// name returns what a log calls the key: the beginning of its hash, as in a keys file.
func (e keyEntry) name() string { return hashPrefix + hex.EncodeToString(e.hash[:4]) }

// String says how many keys there are, for a log.
func (k *Keyring) String() string {
	if k.Empty() {
		return "none"
	}
	tenants := map[string]bool{}
	for _, e := range k.keys {
		tenants[e.owner.Tenant] = true
	}
	return fmt.Sprintf("%s of %s", humanize.Count(len(k.keys), "key"),
		humanize.Count(len(tenants), "tenant"))
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
			err = ring.add(keyEntry{hash: sha256.Sum256([]byte(key)), source: inEnvironment,
				owner: principal{Tenant: tenant, Role: roleUser}})
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

var tenantName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

func checkTenant(name string) error {
	if !tenantName.MatchString(name) {
		return fmt.Errorf("tenant %q is not a name of up to 64 letters, digits, '.', '_' and '-'",
			name)
	}
	return nil
}
