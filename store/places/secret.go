package places

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidefill/tidefill/store"
)

// The keys of a Secret, which are the names of its files.
const (
	accessKeyID     = "access-key-id"
	secretAccessKey = "secret-access-key"
	tosAccessKey    = "access-key"
	tosSecretKey    = "secret-key"
	regionKey       = "region"
	bucketKey       = "bucket-name"
	endpointKey     = "endpoint"
	serviceAccount  = "service-account.json"
)

// setupError is a fault of a profile or its Secret. Its text is for users.
type setupError struct{ text string }

func (e *setupError) Error() string { return e.text }

// Unwrap returns ErrRefused: only an operator can end it.
func (e *setupError) Unwrap() error { return store.ErrRefused }

func setup(format string, args ...any) error {
	return &setupError{fmt.Sprintf(format, args...)}
}

// secretState is the SHA-256 of the files of a Secret. The zero value is that of no Secret.
type secretState [sha256.Size]byte

// secret is what the files of a Secret say. Keys stay in their files.
type secret struct {
	accessKeyFile, secretKeyFile string // empty: the default credentials of the environment
	region, bucket, endpoint     string
	state                        secretState
}

// readSecret reads the Secret of a storage; the zero value if it names none.
func (o *Options) readSecret(s store.Storage) (found secret, err error) {
	if s.Backend == local || s.Credentials == "" {
		return found, nil
	}
	dir, err := o.secretDir(s.Credentials)
	if err != nil {
		return found, err
	}
	r := secretReader{dir: dir, name: filepath.Base(s.Credentials)}
	access, key := accessKeyID, secretAccessKey
	switch {
	case s.Backend == tos:
		access, key = tosAccessKey, tosSecretKey
		found.endpoint = r.read(endpointKey)
	case s.Backend == gcs && r.read(accessKeyID) == "" && r.read(serviceAccount) != "":
		return found, setup("the Secret %s has a %s, which can't be used; give it the HMAC keys "+
			"%s and %s", r.name, serviceAccount, accessKeyID, secretAccessKey)
	}
	found.region, found.bucket = r.read(regionKey), r.read(bucketKey)
	found.accessKeyFile, found.secretKeyFile = filepath.Join(dir, access), filepath.Join(dir, key)
	keys := r.need(access) + "\n" + r.need(key)
	if r.err != nil {
		return secret{}, r.err
	}
	found.state = sha256.Sum256([]byte(strings.Join([]string{keys, found.region, found.bucket,
		found.endpoint}, "\n")))
	return found, nil
}

// secretDir returns the directory of a Secret. A name can't lead out of SecretsDir.
func (o *Options) secretDir(ref string) (string, error) {
	switch {
	case filepath.IsAbs(ref):
		return filepath.Clean(ref), nil
	case ref == "." || ref == ".." || strings.ContainsAny(ref, `/\`):
		return "", setup("credentials_secret_ref is %q, must be the name of a Secret or an "+
			"absolute path", ref)
	case o.SecretsDir == "":
		return "", setup("the Secret %s can't be read, since registry.secrets_dir is not set", ref)
	}
	return filepath.Join(o.SecretsDir, ref), nil
}

// secretReader reads the files of a Secret. It keeps the first error.
type secretReader struct {
	dir, name string
	err       error
}

// read returns the value of a key; empty: there is none.
func (r *secretReader) read(key string) string {
	content, err := os.ReadFile(filepath.Join(r.dir, key))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && r.err == nil {
		r.err = setup("the key %s of the Secret %s can't be read by the daemon", key, r.name)
	}
	return strings.TrimSpace(string(content))
}

// need is read of a key that must have a value.
func (r *secretReader) need(key string) string {
	value := r.read(key)
	if value == "" && r.err == nil {
		r.err = setup("the Secret %s has no key %s", r.name, key)
	}
	return value
}
