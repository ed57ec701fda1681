package buckets

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/tidefill/tidefill/store"
)

// Objects are the objects of a bucket, by their names. Errors are as those of package store/places.
type Objects interface {
	// Open opens an object, as [store.Blobs] does. A read is ErrNotFound if the object was replaced
	// since.
	Open(ctx context.Context, name string) (store.Blob, error)
	// Create starts an object, as [store.Blobs] does.
	Create(ctx context.Context, name string) (store.BlobWriter, error)
	// List returns up to limit objects whose names start with prefix and sort after the given one,
	// in the byte order of their names.
	List(ctx context.Context, prefix, after string, limit int) ([]store.BlobInfo, error)
	// CheckWrite returns why an object can't be written; nil: it can. It leaves no object.
	CheckWrite(ctx context.Context, name string) error
}

// Opener returns the objects of a bucket, of which only names that start with below are used. It
// does not wait.
type Opener func(s store.Storage, below string) Objects

// Buckets holds the entries. It is safe for concurrent use.
type Buckets struct {
	open    Opener
	entries atomic.Pointer[[]Entry]
}

// New returns the buckets of valid entries. open may be nil if there are none.
func New(open Opener, entries []Entry) *Buckets {
	b := &Buckets{open: open}
	b.Configure(entries)
	return b
}

// Configure replaces the entries, which must be valid.
func (b *Buckets) Configure(entries []Entry) {
	entries = slices.Clone(entries)
	b.entries.Store(&entries)
}

// Place is what a URL stands for.
type Place struct {
	Objects
	URL
	// Entry is the name of the entry that permits its use.
	Entry string
}

// Refusal is an error of a URL that a tenant may not use. Its text is for users, and says nothing
// of what others may use.
type Refusal struct{ text string }

func (r *Refusal) Error() string { return r.text }

// Find returns the place of a URL, or a *Refusal. Of several entries that permit the use, that with
// the longest prefix counts.
func (b *Buckets) Find(tenant string, u URL, use Use) (Place, error) {
	var best *Entry
	var own, below []string
	named, inside := false, false
	entries := *b.entries.Load()
	for i := range entries {
		e := &entries[i]
		if !e.openTo(tenant) {
			continue
		}
		if e.permits(use) {
			own = append(own, URL{e.Bucket, e.Prefix}.String())
		}
		if e.Bucket != u.Bucket {
			continue
		}
		named = true
		if e.permits(use) {
			below = append(below, URL{e.Bucket, e.Prefix}.String())
		}
		if !strings.HasPrefix(u.Name, e.Prefix) {
			continue
		}
		inside = true
		if e.permits(use) && (best == nil || len(e.Prefix) > len(best.Prefix)) {
			best = e
		}
	}
	switch {
	case best != nil:
		return Place{b.open(best.storage(), best.Prefix), u, best.Name}, nil
	case !named:
		return Place{}, refuse("the bucket %q is not open to you%s", u.Bucket, offer(use, own))
	case !inside && len(below) > 0:
		return Place{}, refuse("the object is outside of what is open to you of the bucket %q%s",
			u.Bucket, offer(use, below))
	}
	return Place{}, refuse("the server may not %s there; it may %s%s", use, other(use),
		offer(use, own))
}

func other(use Use) Use {
	if use == Read {
		return Write
	}
	return Read
}

func refuse(format string, args ...any) error { return &Refusal{fmt.Sprintf(format, args...)} }

// offer says what a tenant may use instead.
func offer(use Use, places []string) string {
	if len(places) == 0 {
		return "; ask the server's operator to list a bucket for you under 'buckets' of the " +
			"configuration"
	}
	slices.Sort(places)
	return fmt.Sprintf("; you may let the server %s below %s", use,
		strings.Join(slices.Compact(places), ", "))
}
