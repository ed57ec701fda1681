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

// translate turns the driver's errors into those the contracts name.
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

// short reports whether a write may have failed for want of room. SQLite reports that as FULL in
// most cases, but as an I/O error or as one of opening a file when it concerns its shared memory, a
// new file or a quota.
func short(err error) bool {
	switch primaryCode(err) {
	case codes.SQLITE_FULL, codes.SQLITE_IOERR, codes.SQLITE_CANTOPEN:
		return true
	}
	return false
}

// taken reports whether an insert met a row that has the id already.
func taken(err error) bool {
	var coded *driver.Error
	return errors.As(err, &coded) && (coded.Code() == codes.SQLITE_CONSTRAINT_UNIQUE ||
		coded.Code() == codes.SQLITE_CONSTRAINT_PRIMARYKEY)
}

// orphan reports whether an insert named an object that doesn't exist.
func orphan(err error) bool {
	var coded *driver.Error
	return errors.As(err, &coded) && coded.Code() == codes.SQLITE_CONSTRAINT_FOREIGNKEY
}
