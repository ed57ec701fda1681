package tables

import (
	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// File is a file with its encoded columns.
type File struct {
	store.File          // its summary is nil
	Doc, Summary []byte // Summary nil: none
}

// EncodeFile truncates the file's times and encodes its summary apart from its document.
func EncodeFile(f store.File) (row File, err error) {
	Truncate(&f.CreatedAt, &f.ExpiresAt)
	if f.Summary != nil {
		if row.Summary, err = Encode(f.Summary); err != nil {
			return row, err
		}
		f.Summary = nil
	}
	row.File = f
	row.Doc, err = Encode(f)
	return row, err
}

// DecodeFile decodes a file that was read.
func DecodeFile(doc, summary []byte) (store.File, error) {
	f, err := Decode[store.File](doc)
	if err == nil && summary != nil {
		f.Summary, err = Decode[*batchfile.Summary](summary)
	}
	return f, err
}

// Blobs returns the keys of the file's blobs.
func (f File) Blobs() []string { return blobs(nil, f.BlobKey, f.IndexKey) }

// InputBlobs returns the keys of the blobs of the batch's inputs.
func InputBlobs(b store.Batch) (keys []string) {
	for _, in := range b.Inputs {
		keys = blobs(keys, in.BlobKey, in.IndexKey)
	}
	return keys
}

func blobs(to []string, keys ...string) []string {
	for _, key := range keys {
		if key != "" {
			to = append(to, key)
		}
	}
	return to
}
