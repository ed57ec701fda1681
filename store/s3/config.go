package s3

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Config configures the bucket of a cluster. Without access_key_file, credentials are taken from
// the first that has some: the variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the file
// ~/.aws/credentials (AWS_SHARED_CREDENTIALS_FILE, AWS_PROFILE), a web identity
// (AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN), the role of the container, the role of the machine.
type Config struct {
	// Endpoint is the URL of the storage, such as https://minio.example.com:9000. Empty: Amazon S3
	// in the region. Default: empty.
	Endpoint string `yaml:"endpoint"`
	// Region is the region of the bucket. Storages without regions ignore it. Default: us-east-1.
	Region string `yaml:"region"`
	// Bucket is the name of the bucket, which must exist. Required.
	Bucket string `yaml:"bucket"`
	// Prefix begins the names of all objects, without a slash at its ends. No two clusters may
	// have the same in one bucket. Default: tidefill.
	Prefix string `yaml:"prefix"`
	// PathStyle puts the bucket into the path of URLs and not into the name of the host. Storages
	// other than Amazon S3 often need it. Default: false.
	PathStyle bool `yaml:"path_style"`
	// AccessKeyFile and SecretKeyFile are files that hold the access key and the secret key. They
	// are read when the storage is opened. Default: empty, see above.
	AccessKeyFile string `yaml:"access_key_file"`
	// SecretKeyFile is described with AccessKeyFile. Default: empty.
	SecretKeyFile string `yaml:"secret_key_file"`
	// CAFile is a file with the certificates (PEM) that sign the storage's own one. Default: those
	// of the system.
	CAFile string `yaml:"ca_file"`
	// Encryption is the encryption that the storage is asked for: empty (what the bucket is set
	// to), AES256, or aws:kms with the key kms_key. Default: empty.
	Encryption string `yaml:"encryption"`
	// KMSKey is the key of the encryption aws:kms. Empty: the account's key for S3. Default: empty.
	KMSKey string `yaml:"kms_key"`

	Tuning `yaml:"tuning"`
}

// Tuning sets what storages differ in.
type Tuning struct {
	// Checksum is what the storage verifies of each object and part: crc32c, or md5 for storages
	// that refuse crc32c. Default: crc32c.
	Checksum string `yaml:"checksum"`
	// StallAfter ends a try that has transferred nothing for so long. At least 100ms. Default: 5s.
	StallAfter time.Duration `yaml:"stall_after"`

	// The following are no keys: tests set them.

	// PartBytes is the size of the parts in which large objects are written, 5 MiB to 64 MiB.
	PartBytes int `yaml:"-"`
	// WriteBytes limits the memory of all writers, and ReadBytes that in which readers read ahead.
	WriteBytes, ReadBytes int64 `yaml:"-"`
	// Tries is the number of attempts of a request, at least 1.
	Tries int `yaml:"-"`
}

const (
	// defaultPart makes a file of 80 GB possible with the 10,000 parts that S3 allows, and is large
	// enough for the round trip of a part not to matter.
	defaultPart = 8 << 20
	// writeMemory is room for 16 parts, and readMemory for 8: enough to use a fast network in both
	// directions on a machine with little memory.
	writeMemory, readMemory = 128 << 20, 64 << 20
	// defaultTries outlasts a short failure of one server of the storage. A longer one is reported.
	defaultTries = 4
	// incompleteAfter is the age at which parts of objects that were never completed are deleted.
	// No upload takes so long.
	incompleteAfter = 24 * time.Hour
)

// DefaultConfig returns the settings for Amazon S3, without a bucket.
func DefaultConfig() Config {
	return Config{Region: "us-east-1", Prefix: "tidefill", Tuning: Tuning{Checksum: crc32c,
		StallAfter: 5 * time.Second, PartBytes: defaultPart, WriteBytes: writeMemory,
		ReadBytes: readMemory, Tries: defaultTries}}
}

const (
	crc32c = "crc32c"
	md5Sum = "md5"
)

const (
	sseS3  = "AES256"
	sseKMS = "aws:kms"
)

var (
	bucketPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	prefixPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$`)
)

// Validate reports every value that is out of range.
func (c Config) Validate() error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf(format, args...))
	}
	if c.Endpoint != "" {
		if u, err := url.Parse(c.Endpoint); err != nil || u.Host == "" ||
			u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" ||
			u.User != nil || u.RawQuery != "" {
			fault("endpoint: must be a URL with a host and nothing else, such as " +
				"https://minio.example.com:9000")
		}
	}
	if !bucketPattern.MatchString(c.Bucket) {
		fault("bucket: is %q, must be the name of a bucket: 3 to 63 lower case letters, digits, "+
			"'-' and '.'", c.Bucket)
	}
	if !prefixPattern.MatchString(c.Prefix) || len(c.Prefix) > 200 ||
		checkKey(c.Prefix) != nil {
		fault("prefix: is %q, must be letters, digits, '-', '_', '.' and slashes between them",
			c.Prefix)
	}
	if c.Region == "" {
		fault("region: is empty")
	}
	if (c.AccessKeyFile == "") != (c.SecretKeyFile == "") {
		fault("access_key_file, secret_key_file: set both or none")
	}
	if c.Encryption != "" && c.Encryption != sseS3 && c.Encryption != sseKMS {
		fault("encryption: is %q, must be empty, %s or %s", c.Encryption, sseS3, sseKMS)
	}
	if c.KMSKey != "" && c.Encryption != sseKMS {
		fault("kms_key: needs encryption: %s", sseKMS)
	}
	if c.Checksum != crc32c && c.Checksum != md5Sum {
		fault("tuning.checksum: is %q, must be %s or %s", c.Checksum, crc32c, md5Sum)
	}
	if c.StallAfter < 100*time.Millisecond {
		fault("tuning.stall_after: is %v, must be 100ms or more", c.StallAfter)
	}
	return errors.Join(faults...)
}
