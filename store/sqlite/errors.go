package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/tidefill/tidefill/store"
)

// translate wraps the driver's errors in those of package store.
func translate(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && (primaryCode(err) == codes.SQLITE_INTERRUPT ||
		errors.Is(err, sql.ErrTxDone)):
		return ctx.Err()
	}
	switch primaryCode(err) {
	case codes.SQLITE_FULL:
		return fmt.Errorf("%w: %w", store.ErrNoSpace, err)
	case codes.SQLITE_BUSY, codes.SQLITE_LOCKED, codes.SQLITE_PROTOCOL:
		return fmt.Errorf("%w: %w", errLocked, err)
	case codes.SQLITE_IOERR, codes.SQLITE_CANTOPEN, codes.SQLITE_READONLY, codes.SQLITE_PERM,
		codes.SQLITE_AUTH,
		codes.SQLITE_CORRUPT, codes.SQLITE_NOTADB, codes.SQLITE_NOMEM, codes.SQLITE_NOLFS:
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return err
}

func primaryCode(err error) int {
	var coded *driver.Error
	if !errors.As(err, &coded) {
		return codes.SQLITE_OK
	}
	return coded.Code() & 0xff
}

// maybeFull reports whether a write may have failed because the disk is full. SQLite reports that
// as FULL in most cases. It reports an I/O error, or that it can't open a file, if its shared
// memory, a new file or a quota is concerned.
func maybeFull(err error) bool {
	switch primaryCode(err) {
	case codes.SQLITE_FULL, codes.SQLITE_IOERR, codes.SQLITE_CANTOPEN:
		return true
	}
	return false
}

// isDuplicate reports whether an insert failed because a row has the id already.
func isDuplicate(err error) bool {
	var coded *driver.Error
	return errors.As(err, &coded) && (coded.Code() == codes.SQLITE_CONSTRAINT_UNIQUE ||
		coded.Code() == codes.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// isOrphan reports whether an insert failed because it refers to an object that does not exist.
func isOrphan(err error) bool {
	var coded *driver.Error
	return errors.As(err, &coded) && coded.Code() == codes.SQLITE_CONSTRAINT_FOREIGNKEY
}
