package disk

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/tidefill/tidefill/store"
)

// commitTries limits how often a commit creates its directory again after a concurrent deletion has
// removed it.
const commitTries = 10

// Blobs implements [store.Blobs]. A key is the path of its file, so no key may be the directory of
// another one.
type Blobs struct{ store *Store }

var _ store.Blobs = (*Blobs)(nil)

func (b *Blobs) root() string { return filepath.Join(b.store.dir, "blobs") }

func (b *Blobs) path(key string) (string, error) {
	rel, err := pathOf(key)
	return filepath.Join(b.root(), rel), err
}

// Create implements [store.Blobs].
func (b *Blobs) Create(ctx context.Context, key string) (store.BlobWriter, error) {
	w, err := b.create(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("create blob %s: %w", key, err)
	}
	return w, nil
}

func (b *Blobs) create(ctx context.Context, key string) (*blobWriter, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path, err := b.path(key)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(b.store.presence.check(), b.store.reserve.check(1)); err != nil {
		return nil, err
	}
	reserved, err := os.CreateTemp(b.store.tmp.path, "blob-")
	if err != nil {
		return nil, b.store.presence.explain(translate(err))
	}
	if err := reserved.Close(); err != nil {
		return nil, err
	}
	f, err := b.store.openFile(reserved.Name(), os.O_WRONLY)
	if err != nil {
		return nil, err
	}
	return &blobWriter{key: key, path: path, presence: b.store.presence, tmp: reserved.Name(),
			file: f, buf: bufio.NewWriterSize(&pacedFile{file: f, reserve: b.store.reserve},
				64<<10)},
		nil
}

type blobWriter struct {
	key, path, tmp string
	presence       *presence
	file           file
	// returns its first error again, so that a blob with a gap can't be committed
	buf  *bufio.Writer
	done bool
}

func (w *blobWriter) Write(p []byte) (int, error) {
	n, err := w.buf.Write(p)
	if err != nil {
		return n, fmt.Errorf("write blob %s: %w", w.key, err)
	}
	return n, nil
}

func (w *blobWriter) Commit(ctx context.Context) error {
	if w.done {
		return fmt.Errorf("commit blob %s: %w", w.key, os.ErrClosed)
	}
	if err := w.commit(ctx); err != nil {
		return errors.Join(fmt.Errorf("commit blob %s: %w", w.key, err), w.Abort())
	}
	w.done = true
	return nil
}

func (w *blobWriter) commit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := w.buf.Flush(); err != nil {
		return err
	}
	if err := w.file.Sync(); err != nil {
		return err
	}
	if err := w.presence.checkNow(); err != nil {
		return err // or rename would create the directory again
	}
	// Listings return the time of the commit, and the last write may be long ago.
	if err := os.Chtimes(w.tmp, time.Time{}, time.Now()); err != nil {
		return translate(err)
	}
	if err := w.rename(); err != nil {
		return err
	}
	return errors.Join(syncDir(filepath.Dir(w.path)), w.file.Close())
}

func (w *blobWriter) rename() (err error) {
	for range commitTries {
		if err = makeDir(filepath.Dir(w.path)); err == nil {
			err = translate(os.Rename(w.tmp, w.path))
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	//nolint:errorlint // it hides ErrNotFound: no object of a user is missing
	return fmt.Errorf("%w: %v", store.ErrUnavailable, err)
}

func (w *blobWriter) Abort() error {
	if w.done {
		return nil
	}
	w.done = true
	_ = w.file.Close() // already closed if Commit failed late; the bytes are dropped anyway
	if err := os.Remove(w.tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("abort blob %s: %w", w.key, err)
	}
	return nil
}

// Open implements [store.Blobs].
func (b *Blobs) Open(ctx context.Context, key string) (store.Blob, error) {
	o, err := b.open(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("open blob %s: %w", key, err)
	}
	return o, nil
}

func (b *Blobs) open(ctx context.Context, key string) (*blob, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	path, err := b.path(key)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, b.store.presence.explain(translate(err))
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = store.ErrNotFound
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &blob{f, info.Size()}, nil
}

type blob struct {
	*os.File
	size int64
}

func (b *blob) ReadAt(p []byte, off int64) (int, error) {
	n, err := b.File.ReadAt(p, off)
	return n, translate(err)
}

func (b *blob) Size() int64 { return b.size }

// Delete implements [store.Blobs].
func (b *Blobs) Delete(ctx context.Context, key string) error {
	path, err := b.path(key)
	if err == nil {
		err = b.remove(ctx, path, os.Remove)
	}
	if err != nil {
		return fmt.Errorf("delete blob %s: %w", key, err)
	}
	return nil
}

// DeletePrefix implements [store.Blobs].
func (b *Blobs) DeletePrefix(ctx context.Context, prefix string) error {
	path, err := b.path(prefix)
	if err == nil {
		if info, statErr := os.Stat(path); statErr == nil && !info.IsDir() {
			return nil // a blob with this key, which is not below prefix + "/"
		}
		err = b.remove(ctx, path, os.RemoveAll)
	}
	if err != nil {
		return fmt.Errorf("delete blobs below %s: %w", prefix, err)
	}
	return nil
}

// remove removes a path, and the directories that become empty.
func (b *Blobs) remove(ctx context.Context, path string, remove func(string) error) error {
	if err := errors.Join(ctx.Err(), b.store.presence.check()); err != nil {
		return err
	}
	if err := remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return translate(err)
	}
	for dir := filepath.Dir(path); dir != b.root(); dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil {
			break // not empty
		}
	}
	return nil //nolint:nilerr // the one error that is left is that there was nothing to remove
}
