package batchfile

import (
	"bytes"
	"encoding/json"
	"testing"
)

// BenchmarkStandardLibrary reads the files of BenchmarkScan with encoding/json, as plainly as that
// permits: it validates each line and takes its fields apart. It does not reject repeated keys,
// needs each line in memory, and writes no index.
func BenchmarkStandardLibrary(b *testing.B) {
	type body struct {
		Model     json.RawMessage `json:"model"`
		Stream    json.RawMessage `json:"stream"`
		Messages  json.RawMessage `json:"messages"`
		Prompt    json.RawMessage `json:"prompt"`
		MaxTokens json.RawMessage `json:"max_tokens"`
	}
	type line struct {
		CustomID string          `json:"custom_id"`
		Method   string          `json:"method"`
		URL      string          `json:"url"`
		Body     json.RawMessage `json:"body"`
	}
	benchmarkRows(b, func(row []byte) error {
		var l line
		if err := json.Unmarshal(row, &l); err != nil {
			return err
		}
		return json.Unmarshal(l.Body, new(body))
	})
}

// benchmarkRows measures a way to read the rows of the files of BenchmarkScan.
func benchmarkRows(b *testing.B, read func(row []byte) error) {
	for name, file := range benchFiles() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			b.ReportAllocs()
			for b.Loop() {
				for row := range bytes.Lines(file) {
					if err := read(row); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
