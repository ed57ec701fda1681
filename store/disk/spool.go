package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	return temporary{osFile{f}, s.reserve}, nil
}

type temporary struct {
	osFile
	reserve *reserve
}

// Write does not use the reserve.
func (t temporary) Write(b []byte) (int, error) {
	if err := t.reserve.check(int64(len(b))); err != nil {
		return 0, err
	}
	return t.osFile.Write(b)
}

func (t temporary) Close() error {
	err := os.Remove(t.Name())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, t.osFile.Close())
}
