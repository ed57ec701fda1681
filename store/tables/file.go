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

// FilePage collects a page of files.
type FilePage struct {
	Limit int // 0: none
	page  store.Page[store.File]
	last  Position
}

// Scan adds a row of document, time of creation and number, or notes that there are more.
func (p *FilePage) Scan(row Row) error {
	if p.page.More = p.Limit > 0 && len(p.page.Items) == p.Limit; p.page.More {
		return nil
	}
	var doc []byte
	if err := row.Scan(&doc, &p.last.At, &p.last.Seq); err != nil {
		return err
	}
	f, err := Decode[store.File](doc)
	p.page.Items = append(p.page.Items, f)
	return err
}

// Page returns the page.
func (p *FilePage) Page() store.Page[store.File] {
	if p.page.More {
		p.page.Next = p.last.String()
	}
	return p.page
}
