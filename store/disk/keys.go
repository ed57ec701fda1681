package disk

import (
	"fmt"
	"path/filepath"
	"strings"
)

// maxNameLength is what common file systems allow for one name, less room for a suffix.
const maxNameLength = 240

// pathOf turns a key into a relative path that stays below its root.
func pathOf(key string) (string, error) {
	for name := range strings.SplitSeq(key, "/") {
		if err := checkName(name); err != nil {
			return "", fmt.Errorf("key %q: %w", key, err)
		}
	}
	return filepath.FromSlash(key), nil
}

// checkName accepts the names that mean the same on every file system and lead nowhere else.
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
