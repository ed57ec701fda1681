//go:build goexperiment.jsonv2

package batchfile

import (
	"bytes"
	"encoding/json/jsontext"
	"testing"
)

// BenchmarkJSONText is BenchmarkStandardLibrary with the experimental encoding/json/jsontext, which
// rejects repeated keys.
func BenchmarkJSONText(b *testing.B) {
	var in bytes.Reader
	d := jsontext.NewDecoder(&in)
	benchmarkRows(b, func(row []byte) error {
		in.Reset(row)
		d.Reset(&in)
		for d.PeekKind() != jsontext.KindInvalid { // to the end of the row
			token, err := d.ReadToken()
			if err != nil {
				return err
			}
			isKey := d.StackDepth() > 0 && token.Kind() == '"'
			if isKey && (d.StackDepth() > 1 || token.String() != "body") {
				if err := d.SkipValue(); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
