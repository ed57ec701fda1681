package tables

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrDocument means that a stored document can't be read.
var ErrDocument = errors.New("decode document")

// Encode encodes a document. It does not escape <, > and &, unlike json.Marshal.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode document: %w", err)
	}
	return b.Bytes()[:b.Len()-1], nil // without the newline
}

// Decode decodes a document.
func Decode[T any](doc []byte) (T, error) {
	var v T
	if err := json.Unmarshal(doc, &v); err != nil {
		return v, fmt.Errorf("%w: %w", ErrDocument, err)
	}
	return v, nil
}
