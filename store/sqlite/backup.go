package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
)

// Backup writes the database at path, as it is at one instant, into a new file. Other processes may
// have it open, and go on writing.
func Backup(ctx context.Context, path, to string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("back up database %s: %w", path, err)
		}
	}()
	if path, err = filepath.Abs(path); err != nil {
		return err
	}
	address := url.URL{Scheme: "file", Path: filepath.ToSlash(path), RawQuery: url.Values{
		"mode": {"ro"}, "_pragma": {fmt.Sprintf("busy_timeout(%d)",
			defaultLockWait.Milliseconds())}}.Encode()}
	db, err := sql.Open("sqlite", address.String())
	if err != nil {
		return err
	}
	if err = create(to); err == nil {
		_, err = db.ExecContext(ctx, "VACUUM INTO ?", to)
	}
	if err = errors.Join(err, db.Close()); err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_RDWR, 0) // to sync it, which VACUUM INTO does not
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
