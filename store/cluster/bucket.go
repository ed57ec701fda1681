package cluster

import (
	"context"

	"github.com/tidefill/tidefill/store/s3"
)

// bucket is a prefix of a bucket as a place of files.
type bucket struct {
	cfg  s3.Config
	open *s3.Bucket
}

func (b bucket) name() string   { return "bucket " + b.cfg.Bucket + ", prefix " + b.cfg.Prefix }
func (b bucket) key() string    { return "store.cluster.objects" }
func (b bucket) marker() string { return s3.MarkerName }

func (b bucket) object(name string) string { return "object " + b.cfg.Prefix + "/" + name }

func (b bucket) remedy() string {
	return "correct bucket, prefix and endpoint of store.cluster.objects, or restore the objects"
}

func (b bucket) same(known string) bool { return known == b.name() }

func (b bucket) expect(marker string) { b.open.Expect(marker) }

func (b bucket) misplaced(ctx context.Context) error { return b.open.Misplaced(ctx) }

func (b bucket) read(ctx context.Context, name string) (string, error) {
	return b.open.ReadSmall(ctx, name)
}

func (b bucket) write(ctx context.Context, name, content string, onlyNew bool) error {
	return b.open.WriteSmall(ctx, name, content, onlyNew)
}
