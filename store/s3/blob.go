package s3

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/tidefill/tidefill/store"
)

const (
	// minWindow is the size of a reader's first range, in bytes. Ranges that continue the last
	// are larger, up to maxWindow.
	minWindow = 128 << 10
	maxWindow = 2 << 20
)

// blob implements [store.Blob]. It holds the context of Open, which covers its reads.
type blob struct {
	bucket *Bucket
	ctx    context.Context
	key    string
	etag   string
	size   int64

	mu      sync.Mutex
	windows []window // that were read last, the newest one last
	next    int64    // where the last window ends
	ahead   int64    // size of the next window of a reader that reads on
	closed  bool
}

// window is a part of a blob in memory. It does not change.
type window struct {
	from  int64
	data  []byte
	taken int64 // of the bucket's room for readers
}

// keptWindows is the number of windows of each blob.
const keptWindows = 2

// openBlob reads the beginning of an object, and with it the size.
func (b *Bucket) openBlob(ctx context.Context, key string) (*blob, error) {
	length := int64(minWindow)
	o := &blob{bucket: b, ctx: ctx, key: key, ahead: minWindow}
	g, err := b.get(ctx, key, "", 0, length)
	if err != nil {
		return nil, err
	}
	o.etag, o.size = g.etag, g.size
	// The first window is kept in any case: small blobs are read with one request.
	o.windows = []window{{data: g.body}}
	o.next = int64(len(g.body))
	return o, nil
}

func (o *blob) Size() int64 { return o.size }

func (o *blob) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, errors.New("read a blob at a negative offset")
	}
	for n < len(p) {
		at := off + int64(n)
		if at >= o.size {
			return n, io.EOF
		}
		data := o.window(at)
		if data == nil {
			if data, err = o.fetch(at, int64(len(p)-n)); err != nil {
				return n, err
			}
		}
		n += copy(p[n:], data)
	}
	return n, nil
}

// window returns the bytes in memory from an offset on; nil: there are none.
func (o *blob) window(at int64) []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, w := range o.windows {
		if at >= w.from && at < w.from+int64(len(w.data)) {
			return w.data[at-w.from:]
		}
	}
	return nil
}

// fetch reads at least one byte from an offset on, and more than wanted if there is room for it.
func (o *blob) fetch(at, wanted int64) ([]byte, error) {
	o.mu.Lock()
	if at == o.next {
		o.ahead = min(2*o.ahead, maxWindow)
	} else {
		o.ahead = minWindow
	}
	length := min(max(o.ahead, min(wanted, maxWindow)), o.size-at)
	o.mu.Unlock()
	taken := length
	if !o.bucket.reading.tryTake(taken) {
		taken, length = 0, min(wanted, length)
	}
	g, err := o.bucket.get(o.ctx, o.key, o.etag, at, length)
	if err == nil && (g.size != o.size || int64(len(g.body)) != length) {
		err = errReplaced
	}
	if err != nil {
		o.bucket.reading.free(taken)
		if errors.Is(err, store.ErrNotFound) {
			err = errReplaced
		}
		return nil, err
	}
	o.keep(window{from: at, data: g.body, taken: taken})
	return g.body, nil
}

// keep remembers a window, unless it has no room.
func (o *blob) keep(w window) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next = w.from + int64(len(w.data))
	if o.closed || w.taken == 0 {
		o.bucket.reading.free(w.taken)
		return
	}
	if len(o.windows) == keptWindows {
		o.bucket.reading.free(o.windows[0].taken)
		o.windows = append(o.windows[:0], o.windows[1:]...)
	}
	o.windows = append(o.windows, w)
}

func (o *blob) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, w := range o.windows {
		o.bucket.reading.free(w.taken)
	}
	o.windows, o.closed = nil, true
	return nil
}
