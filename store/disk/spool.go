package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"

	"github.com/tidefill/tidefill/store"
)

var _ store.Spool = (*Store)(nil)

// Temporary implements [store.Spool]. The file is in the directory of this process, which other
// processes remove after its end.
func (s *Store) Temporary(ctx context.Context) (store.Temporary, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("create temporary file: %w", err)
	}
	f, err := os.CreateTemp(s.tmp.path, "answer-")
	if err != nil {
		return nil, fmt.Errorf("create temporary file: %w", translate(err))
	}
	return &temporary{osFile: osFile{f}, store: s}, nil
}

// TemporarySpace implements [store.Spool]. It leaves out the reserve.
func (s *Store) TemporarySpace() (int64, error) {
	unused := s.reserve.unused()
	return unused + min(s.temporary.Load(), math.MaxInt64-unused), nil
}

type temporary struct {
	osFile
	store   *Store
	written int64
}

// Write does not use the reserve.
func (t *temporary) Write(b []byte) (int, error) {
	if err := t.store.reserve.check(int64(len(b))); err != nil {
		return 0, err
	}
	n, err := t.osFile.Write(b)
	t.written += int64(n)
	t.store.temporary.Add(int64(n))
	return n, err
}

func (t *temporary) Close() error {
	err := os.Remove(t.Name())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	err = errors.Join(err, t.osFile.Close())
	t.store.temporary.Add(-t.written)
	t.written = 0
	return err
}
