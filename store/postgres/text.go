package postgres

import (
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/tidefill/tidefill/store/tables"
)

// encoded begins text that is stored in hexadecimal digits.
const encoded = `\x`

// text returns s as PostgreSQL can store it. Text in PostgreSQL is UTF-8 without NUL, while names
// that users choose (of models, of idempotency keys, in paths of requests) may have any bytes.
// Different strings stay different.
func text(s string) string {
	if utf8.ValidString(s) && !strings.Contains(s, "\x00") && !strings.HasPrefix(s, encoded) {
		return s
	}
	return encoded + hex.EncodeToString([]byte(s))
}

// texts is text for lists. The result is not nil: it stands for an empty array, not for NULL.
func texts[S ~string](list []S) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = text(string(s))
	}
	return out
}

// plain returns the string that text has encoded.
func plain(s string) string {
	digits, ok := strings.CutPrefix(s, encoded)
	if !ok {
		return s
	}
	b, err := hex.DecodeString(digits)
	if err != nil {
		return s // written by hand
	}
	return string(b)
}

// plainRow is a row whose strings were encoded by text.
type plainRow struct{ tables.Row }

// Scan implements [tables.Row].
func (r plainRow) Scan(dest ...any) error {
	if err := r.Row.Scan(dest...); err != nil {
		return err
	}
	for _, d := range dest {
		switch d := d.(type) {
		case *string:
			*d = plain(*d)
		case **string:
			if *d != nil {
				**d = plain(**d)
			}
		}
	}
	return nil
}
