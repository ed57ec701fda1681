package buckets

import (
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/internal/faults"
	"github.com/tidefill/tidefill/store"
)

// Entry is a bucket, or a part of one, that users may name.
type Entry struct {
	// Name identifies the entry in messages and in the log: at most 63 lower-case letters, digits
	// and dashes.
	Name string `yaml:"name"`
	// Bucket is the name of the bucket, which users write in URLs: s3://BUCKET/NAME.
	Bucket string `yaml:"bucket"`
	// Prefix begins the names of the objects that users may name, with a slash at its end: batch/.
	// Others are refused. Empty: all of the bucket.
	Prefix string `yaml:"prefix"`
	// Backend is the kind of the storage: s3, minio, gcs or tos.
	Backend string `yaml:"backend"`
	// Region is the region of the bucket. Empty: that of the Secret, or us-east-1.
	Region string `yaml:"region"`
	// EndpointURL is the address of the storage. Empty: that of the backend. minio has none of its
	// own.
	EndpointURL string `yaml:"endpoint_url"`
	// CredentialsSecretRef names a Secret in registry.secrets_dir, or is the absolute path of a
	// directory with its keys. They are read at use. Empty: the credentials of the environment.
	CredentialsSecretRef string `yaml:"credentials_secret_ref"`
	// Tenants lists the tenants that may name the bucket. Empty: all.
	Tenants []string `yaml:"tenants"`
	// Access is what they may do: read, for inputs; write, for results; or read_write. Empty: read.
	Access string `yaml:"access"`
}

// Use is what a user wants of a bucket.
type Use string

// The uses.
const (
	Read  Use = "read"
	Write Use = "write"
)

const readWrite = "read_write"

var (
	backends  = []string{"s3", "minio", "gcs", "tos"}
	accesses  = []string{"", string(Read), string(Write), readWrite}
	entryName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	// bucketName is as in package store/s3.
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
)

// Validate reports every fault of a list of entries with the path of its field, such as [0].name.
func Validate(entries []Entry) error {
	var f faults.List
	for i, e := range entries {
		at := fmt.Sprintf("[%d]", i)
		e.validate(&f, at)
		for j, other := range entries[:i] {
			switch {
			case other.Name == e.Name:
				f.Add(at+".name", "entry %d is named %q too; give each entry a name of its own", j,
					e.Name)
			case other.Bucket == e.Bucket && other.Prefix == e.Prefix && e.shares(other):
				f.Add(at+".bucket", "entry %d, %s, has the same bucket and prefix for the same "+
					"tenants and use; keep one", j, other.Name)
			}
		}
	}
	return f.Err()
}

func (e Entry) validate(f *faults.List, at string) {
	if !entryName.MatchString(e.Name) {
		f.Add(at+".name", "is %q, must be 1 to 63 lower-case letters, digits and dashes", e.Name)
	}
	if !bucketName.MatchString(e.Bucket) {
		f.Add(at+".bucket", "is %q, must be the name of a bucket: 3 to 63 lower-case letters, "+
			"digits, '-' and '.'", e.Bucket)
	}
	if e.Prefix != "" && (!strings.HasSuffix(e.Prefix, "/") || checkName(e.Prefix) != nil) {
		f.Add(at+".prefix", "is %q, must end in a slash and have no empty name, '.' or '..' in it,"+
			" such as batch/", e.Prefix)
	}
	if !slices.Contains(backends, e.Backend) {
		f.Add(at+".backend", "is %q, must be one of %s", e.Backend, strings.Join(backends, ", "))
	}
	if e.EndpointURL == "" && e.Backend == "minio" {
		f.Add(at+".endpoint_url", "is empty; minio needs the address of the storage")
	}
	if u, err := url.Parse(e.EndpointURL); e.EndpointURL != "" && (err != nil || u.Host == "" ||
		u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" ||
		u.User != nil || u.RawQuery != "") {
		f.Add(at+".endpoint_url", "must be a URL with a host and nothing else, such as "+
			"https://minio.example.com:9000")
	}
	if ref := e.CredentialsSecretRef; ref == "." || ref == ".." ||
		strings.ContainsAny(ref, `/\`) && !filepath.IsAbs(ref) {
		f.Add(at+".credentials_secret_ref", "is %q, must be the name of a Secret, or the absolute "+
			"path of a directory with its keys", ref)
	}
	for i, tenant := range e.Tenants {
		if tenant == "" {
			f.Add(fmt.Sprintf("%s.tenants[%d]", at, i), "is empty; name a tenant")
		}
	}
	if !slices.Contains(accesses, e.Access) {
		f.Add(at+".access", "is %q, must be read, write or read_write", e.Access)
	}
}

// storage returns where the bucket is.
func (e Entry) storage() store.Storage {
	return store.Storage{Backend: e.Backend, Bucket: e.Bucket, Region: e.Region,
		EndpointURL: e.EndpointURL, Credentials: e.CredentialsSecretRef}
}

// openTo reports whether a tenant may name the bucket.
func (e Entry) openTo(tenant string) bool {
	return len(e.Tenants) == 0 || slices.Contains(e.Tenants, tenant)
}

// permits reports whether those who may name the bucket may use it so.
func (e Entry) permits(use Use) bool {
	return e.Access == string(use) || e.Access == readWrite || e.Access == "" && use == Read
}

// shares reports whether a tenant may use both entries for the same.
func (e Entry) shares(other Entry) bool {
	sameUse := e.permits(Read) && other.permits(Read) || e.permits(Write) && other.permits(Write)
	return sameUse && (len(e.Tenants) == 0 || len(other.Tenants) == 0 ||
		slices.ContainsFunc(e.Tenants, other.openTo))
}
