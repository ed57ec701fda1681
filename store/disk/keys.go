package disk

import (
	"fmt"
	"path/filepath"
	"strings"
)

// maxNameLength limits one name: what common file systems allow, less a suffix.
const maxNameLength = 240

// pathOf returns the relative path of a key, which does not leave its root.
func pathOf(key string) (string, error) {
	for name := range strings.SplitSeq(key, "/") {
		if err := checkName(name); err != nil {
			return "", fmt.Errorf("key %q: %w", key, err)
		}
	}
	return filepath.FromSlash(key), nil
}

// checkName accepts the names that are valid on every file system and name a file of the directory.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || len(name) > maxNameLength {
		return fmt.Errorf("%q can't be a file's name", name)
	}
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_',
			c == '.':
		default:
			return fmt.Errorf("%q can't be a file's name: use letters, digits, '-', '_' and '.'",
				name)
		}
	}
	return nil
}
