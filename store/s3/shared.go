package s3

import (
	"context"
	"fmt"

	"github.com/tidefill/tidefill/store"
)

// Shared is the objects of a bucket that belongs to users, by their own names. The process removes
// nothing in it on its own, except the parts of an object that it has aborted.
type Shared struct {
	Blobs
	below string
}

// OpenShared opens a bucket of users. It checks that the bucket exists and that the credentials
// permit to list the names that start with below. Config.Prefix has no effect.
func OpenShared(ctx context.Context, cfg Config, below string, opts Options) (*Shared, error) {
	b, _, err := open(cfg, opts)
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", cfg.Bucket, err)
	}
	s := &Shared{Blobs{bucket: b, check: func(string) error { return nil }}, below}
	if err := b.begin(s.Check(ctx)); err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", cfg.Bucket, err)
	}
	return s, nil
}

// Close waits for the requests in the background.
func (s *Shared) Close() error { return s.bucket.Close() }

// Check returns the reason why the storage can't be used; nil: it can.
func (s *Shared) Check(ctx context.Context) error {
	_, err := s.bucket.listPage(ctx, s.below, "", 1)
	return err
}

// CheckWrite returns the reason why an object can't be written; nil: it can. It leaves no object.
func (s *Shared) CheckWrite(ctx context.Context, name string) error {
	u, err := s.bucket.createUpload(ctx, name)
	if err == nil {
		err = s.bucket.abortUpload(ctx, name, u.id)
	}
	if err != nil {
		return fmt.Errorf("begin object %s: %w", name, err)
	}
	return nil
}

// List is [Blobs.List] of the objects whose names start with a prefix, with or without a slash.
func (s *Shared) List(
	ctx context.Context, prefix, after string, limit int,
) ([]store.BlobInfo, error) {
	infos, err := s.list(ctx, prefix, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list objects that start with %q: %w", prefix, err)
	}
	return infos, nil
}
