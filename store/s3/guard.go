package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/tidefill/tidefill/store"
)

// MarkerName is the name of the object below the prefix by which the installation is recognized
// that the prefix belongs to.
const MarkerName = "cluster"

// ReadSmall reads a small object below the prefix, outside of blobs and segments.
func (b *Bucket) ReadSmall(ctx context.Context, name string) (string, error) {
	content, err := b.readWhole(ctx, b.cfg.Prefix+"/"+name)
	if err != nil {
		return "", fmt.Errorf("read object %s/%s: %w", b.cfg.Prefix, name, err)
	}
	return string(content), nil
}

// WriteSmall writes such an object. onlyNew: [store.ErrExists] if there is one. A storage without
// conditional writes replaces it then.
func (b *Bucket) WriteSmall(ctx context.Context, name, content string, onlyNew bool) error {
	key := b.cfg.Prefix + "/" + name
	err := b.put(ctx, key, []byte(content), onlyNew)
	if onlyNew && unconditional(err) {
		err = b.put(ctx, key, []byte(content), false)
	}
	if errors.Is(err, errReplaced) {
		err = store.ErrExists
	}
	if err != nil {
		return fmt.Errorf("write object %s/%s: %w", b.cfg.Prefix, name, err)
	}
	return nil
}

// unconditional reports whether the storage refuses conditional writes.
func unconditional(err error) bool {
	var f *failure
	return errors.As(err, &f) &&
		(f.status == http.StatusNotImplemented || f.status == http.StatusBadRequest)
}

const (
	// markerGoodFor is the time for which Misplaced trusts a marker that was found.
	markerGoodFor = 20 * time.Second
	// markerBadFor is the time for which it trusts that the marker is another one.
	markerBadFor = time.Second
)

// guard knows whether the prefix still holds the objects that it held when the bucket was opened.
type guard struct {
	mu    sync.Mutex
	want  string // content of the marker; empty: it is not known
	at    time.Time
	fault error // as found at that time
}

// Expect sets the content that the marker must have from now on. While it has another one, an
// object that is missing is [store.ErrUnavailable], not [store.ErrNotFound], and nothing new is
// stored.
func (b *Bucket) Expect(marker string) {
	b.guard.mu.Lock()
	defer b.guard.mu.Unlock()
	b.guard.want, b.guard.at, b.guard.fault = marker, time.Now(), nil
}

// Misplaced returns why the bucket and prefix are not those that the installation stores in; nil:
// they are, or that could not be found out. It reads the marker now and then.
func (b *Bucket) Misplaced(ctx context.Context) error {
	g := &b.guard
	g.mu.Lock()
	age, fault, known := time.Since(g.at), g.fault, g.want != ""
	g.mu.Unlock()
	if !known || fault == nil && age < markerGoodFor || fault != nil && age < markerBadFor {
		return fault
	}
	_ = b.checkMarker(ctx) // a storage that is away is reported by Away
	return b.knownMisplaced()
}

// knownMisplaced is Misplaced without a request.
func (b *Bucket) knownMisplaced() error {
	b.guard.mu.Lock()
	defer b.guard.mu.Unlock()
	return b.guard.fault
}

// checkMarker reads the marker. The error is nil if it is the expected one.
func (b *Bucket) checkMarker(ctx context.Context) error {
	b.guard.mu.Lock()
	want := b.guard.want
	b.guard.mu.Unlock()
	if want == "" {
		return nil
	}
	content, err := b.ReadSmall(ctx, MarkerName)
	key := b.cfg.Prefix + "/" + MarkerName
	var fault error
	switch {
	case errors.Is(err, store.ErrNotFound):
		fault = fmt.Errorf("%w: bucket %s has no object %s any more: it was emptied or made anew; "+
			"restore its objects", store.ErrUnavailable, b.cfg.Bucket, key)
	case err != nil:
		return err
	case content != want:
		fault = fmt.Errorf("%w: object %s of bucket %s is that of other files now; restore the "+
			"objects of this installation", store.ErrUnavailable, key, b.cfg.Bucket)
	}
	b.guard.mu.Lock()
	defer b.guard.mu.Unlock()
	b.guard.at, b.guard.fault = time.Now(), fault
	return fault
}

// explain replaces ErrNotFound by ErrUnavailable unless the marker is there, which is read now.
func (b *Bucket) explain(ctx context.Context, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		if fault := b.checkMarker(ctx); fault != nil {
			return fault
		}
	}
	return err
}
