package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/config"
)

// Faults of entries are reported with their row, and a Secret needs the directory of Secrets.
func TestFaultsOfBuckets(t *testing.T) {
	_, err := config.Parse("f.yaml", []byte(`
buckets:
  - {name: a, bucket: data, backend: s3, credentials_secret_ref: keys}
  - {name: b, bucket: other, backend: minio, credentials_secret_ref: /etc/keys}
`))
	var got []string
	for _, fault := range config.Faults(err) {
		got = append(got, fault.Error())
	}
	want := []string{
		`f.yaml:4: buckets[1].endpoint_url: is empty; minio needs the address of the storage`,
		`f.yaml:3: buckets[0].credentials_secret_ref: the Secret keys can't be read, since ` +
			`registry.secrets_dir is not set; set it, or name the absolute path of a directory`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for prefix, refused := range map[string]bool{"": true, "tidefill/": true,
		"tidefill/blobs/files/": true, "batch/": false, "tidefill2/": false} {
		_, err := config.Parse("f.yaml", fmt.Appendf(nil, `
store:
  backend: cluster
  cluster: {metadata: {url: "postgres://t@h/t"}, objects: {bucket: data}}
buckets: [{name: a, bucket: data, prefix: %q, backend: s3}]
`, prefix))
		if refused != (err != nil && strings.Contains(err.Error(), "the files of all tenants")) ||
			!refused && err != nil {
			t.Errorf("the prefix %q of the daemon's own bucket: %v", prefix, err)
		}
	}
	if _, err := config.Parse("f.yaml", []byte(`
registry: {secrets_dir: /etc/tidefill/secrets}
buckets:
  - {name: a, bucket: data, backend: s3, credentials_secret_ref: keys, access: read_write}
`)); err != nil {
		t.Error(err)
	}
}
