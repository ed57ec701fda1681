package s3

import "errors"

// CheckFiles reads the files that the configuration names, and reports every fault with the path of
// its field. It sends nothing.
func (c Config) CheckFiles() error {
	_, err := newTransport(c)
	faults := []error{err}
	read := func(key, path string) {
		if path != "" {
			_, err := readSecret(key, path)
			faults = append(faults, err)
		}
	}
	read("access_key_file", c.AccessKeyFile)
	read("secret_key_file", c.SecretKeyFile)
	return errors.Join(faults...)
}
