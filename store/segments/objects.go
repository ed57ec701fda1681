package segments

import (
	"context"
	"io"
)

// Objects holds the bytes of segments by name. Names are those of keys. Methods are safe for
// concurrent use. A medium that does not answer is store.ErrUnavailable, a full one
// store.ErrNoSpace.
type Objects interface {
	// Put stores an object of size bytes, which content returns, the same bytes each time. The
	// object is complete when Put has returned nil, and complete or absent in any other case. A
	// second Put of a name has the same bytes. What a failed or cancelled Put has sent may still
	// appear later.
	Put(ctx context.Context, name string, size int64, content func() io.Reader) error
	// ReadAt reads len(p) bytes of an object from an offset on. ErrNotFound: there is no such
	// object, or it is shorter.
	ReadAt(ctx context.Context, name string, p []byte, offset int64) error
	// Delete removes objects, those of them that exist.
	Delete(ctx context.Context, names ...string) error
	// List returns up to limit names that sort after the given one, in byte order. An object that
	// is stored or deleted meanwhile may be listed or not.
	List(ctx context.Context, after string, limit int) ([]string, error)
}
