package s3

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// errOtherCluster means that another cluster has the prefix.
var errOtherCluster = errors.New("the prefix belongs to another cluster")

// claim checks that the prefix belongs to the cluster, and claims it if it belongs to none. Where
// the storage has conditional writes, one of two clusters that claim it at the same time is
// refused. Elsewhere the one is refused that reads first what the other one has written.
func (b *Bucket) claim(ctx context.Context) error {
	key := b.cfg.Prefix + "/cluster"
	owner, err := b.readWhole(ctx, key)
	if b.opts.Cluster == "" {
		if errors.Is(err, errNoObject) {
			return nil
		}
		return err
	}
	if errors.Is(err, errNoObject) {
		err = b.put(ctx, key, []byte(b.opts.Cluster+"\n"), true)
		if unconditional(err) {
			err = b.put(ctx, key, []byte(b.opts.Cluster+"\n"), false)
		}
		if err != nil && !errors.Is(err, errReplaced) {
			return err
		}
		owner, err = b.readWhole(ctx, key)
	}
	if err != nil {
		return err
	}
	if id := strings.TrimSpace(string(owner)); id != b.opts.Cluster {
		return fmt.Errorf("%w: prefix %s has the cluster %s, this one is %s: set another prefix, "+
			"or delete the object %s if that cluster is gone", errOtherCluster, b.cfg.Prefix, id,
			b.opts.Cluster, key)
	}
	return nil
}

// unconditional reports whether the storage refuses conditional writes.
func unconditional(err error) bool {
	var f *failure
	return errors.As(err, &f) &&
		(f.status == http.StatusNotImplemented || f.status == http.StatusBadRequest)
}
