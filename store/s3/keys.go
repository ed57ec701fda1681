package s3

import (
	"fmt"
	"strings"
)

// checkKey accepts the keys that every backend accepts.
func checkKey(key string) error {
	for name := range strings.SplitSeq(key, "/") {
		if name == "" || name == "." || name == ".." || len(name) > 240 {
			return fmt.Errorf("key %q: %q can't be a name in it", key, name)
		}
	}
	for _, c := range []byte(key) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_',
			c == '.', c == '/':
		default:
			return fmt.Errorf("key %q: use letters, digits, '-', '_' and '.'", key)
		}
	}
	return nil
}
