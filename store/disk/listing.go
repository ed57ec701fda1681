package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/store"
)

// List implements [store.Blobs]. It reads all entries of each directory that it visits, so pages
// should be large.
func (b *Blobs) List(
	ctx context.Context, prefix, after string, limit int,
) ([]store.BlobInfo, error) {
	path, err := b.path(prefix)
	if err == nil {
		err = b.store.presence.check()
	}
	if err == nil {
		if info, statErr := os.Stat(path); statErr == nil && !info.IsDir() {
			return nil, nil // a blob with this key, which is not below prefix + "/"
		}
		l := listing{after: after, limit: limit}
		if err = l.walk(ctx, path, prefix+"/"); err == nil {
			return l.found, nil
		}
	}
	return nil, fmt.Errorf("list blobs below %s: %w", prefix, err)
}

// listing collects one page.
type listing struct {
	after string
	limit int // 0: none
	found []store.BlobInfo
}

func (l *listing) full() bool { return l.limit > 0 && len(l.found) >= l.limit }

// walk adds the blobs of a directory, whose keys start with prefix.
func (l *listing) walk(ctx context.Context, path, prefix string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its last blob was deleted meanwhile
	}
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int {
		return cmp.Compare(sortKey(a), sortKey(b))
	})
	for _, entry := range entries {
		key := prefix + sortKey(entry)
		switch {
		case l.full():
			return nil
		case strings.HasPrefix(l.after, key) && entry.IsDir():
			// it has blobs before and after l.after
		case key <= l.after:
			continue
		}
		if entry.IsDir() {
			err = l.walk(ctx, path+string(os.PathSeparator)+entry.Name(), key)
		} else {
			err = l.add(key, entry)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sortKey returns the entry's part of the keys of its blobs. In those of a directory a slash
// follows the name.
func sortKey(entry fs.DirEntry) string {
	if entry.IsDir() {
		return entry.Name() + "/"
	}
	return entry.Name()
}

func (l *listing) add(key string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // deleted meanwhile
	}
	if err != nil {
		return err
	}
	l.found = append(l.found, store.BlobInfo{Key: key, Bytes: info.Size(),
		CommittedAt: info.ModTime()})
	return nil
}
