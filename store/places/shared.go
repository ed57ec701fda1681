package places

import "context"

// Shared is the objects of a bucket of users. Of the methods of [store.Blobs], List takes the
// beginning of names, with or without a slash.
type Shared struct{ blobs }

// CheckWrite returns why an object can't be written; nil: it can. It leaves no object.
func (s *Shared) CheckWrite(ctx context.Context, name string) error {
	return s.with(ctx, func(c *client) error { return c.checkWrite(ctx, name) })
}
