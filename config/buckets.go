package config

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/tidefill/tidefill/store/buckets"
)

// validateBuckets reports what is wrong with the buckets of users.
func (c Config) validateBuckets() error {
	var faults []error
	for _, fault := range Faults(buckets.Validate(c.Buckets)) {
		faults = append(faults, fmt.Errorf("buckets%w", fault))
	}
	own, _ := c.Store.Settings[c.Store.Backend].(interface {
		HoldsObjects(endpoint, bucket, prefix string) bool
	})
	for i, e := range c.Buckets {
		if own != nil && own.HoldsObjects(e.EndpointURL, e.Bucket, e.Prefix) {
			faults = append(faults, fmt.Errorf("buckets[%d].prefix: is %q, where the daemon keeps "+
				"the files of all tenants; name another prefix or bucket", i, e.Prefix))
		}
		ref := e.CredentialsSecretRef
		if ref != "" && !filepath.IsAbs(ref) && c.Registry.SecretsDir == "" {
			faults = append(faults, fmt.Errorf("buckets[%d].credentials_secret_ref: the Secret %s "+
				"can't be read, since registry.secrets_dir is not set; set it, or name the "+
				"absolute path of a directory", i, ref))
		}
	}
	return errors.Join(faults...)
}
