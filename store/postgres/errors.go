package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/tables"
)

// Codes of tidefill_require.
const (
	refusedNotFound = "TF404"
	refusedConflict = "TF409"
	refusedExists   = "TF410"
	refusedFenced   = "TF423"
	refusedSwept    = "TF425"
)

// Codes of PostgreSQL, as its appendix A lists them.
const (
	uniqueViolation      = "23505"
	foreignKeyViolation  = "23503"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	diskFull             = "53100"
	readOnlyTransaction  = "25006"
	badStatementName     = "26000"
	duplicateStatement   = "42P05"
	queryCanceled        = "57014"
	// A prepared statement's tables were changed by a migration. The driver prepares it anew.
	planOutdated = "0A000"
)

// translate wraps the driver's errors in those of package store. ctx is the context of the caller,
// without the limits of this package.
func translate(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return translateCode(refused)
	}
	if isOurs(err) {
		return err
	}
	if refusedAtOnce(err) {
		return fmt.Errorf("%w: %w: %w", store.ErrUnavailable, store.ErrRefused, err)
	}
	// No answer: the connection failed, could not be made, or took too long.
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

// refusedAtOnce reports whether a connection fails by the settings of this process.
func refusedAtOnce(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate) || errors.Is(err, errPassword)
}

// isOurs reports whether an error comes from this package and not from the connection.
func isOurs(err error) bool {
	for _, ours := range []error{store.ErrNotFound, store.ErrConflict, store.ErrExists,
		store.ErrFenced, store.ErrNoSpace, store.ErrBadCursor, tables.ErrDocument} {
		if errors.Is(err, ours) {
			return true
		}
	}
	return false
}

// translateCode wraps an error that the server has reported.
func translateCode(err *pgconn.PgError) error {
	wrap := func(target error) error { return fmt.Errorf("%w: %w", target, err) }
	switch err.Code {
	case refusedNotFound:
		return fmt.Errorf("%s: %w", err.Message, store.ErrNotFound)
	case refusedConflict:
		return fmt.Errorf("%s: %w", err.Message, store.ErrConflict)
	case refusedExists:
		return fmt.Errorf("%s: %w", err.Message, store.ErrExists)
	case refusedFenced:
		return fmt.Errorf("%s: %w", err.Message, store.ErrFenced)
	case uniqueViolation:
		return store.ErrExists
	case foreignKeyViolation:
		return store.ErrNotFound
	case diskFull:
		return wrap(store.ErrNoSpace)
	case serializationFailure, deadlockDetected, readOnlyTransaction, queryCanceled:
		return wrap(store.ErrUnavailable)
	case badStatementName, duplicateStatement:
		return fmt.Errorf("%w: prepared statements get lost between this process and the server; "+
			"set tuning.statements: unnamed if a pooler is between them: %w", store.ErrUnavailable,
			err)
	}
	switch class(err) {
	case "28": // authorization
		return fmt.Errorf("%w: the server refuses the user; check the user in url, and "+
			"password_env or password_file: %w: %w", store.ErrUnavailable, store.ErrRefused,
			err)
	case "3D":
		return fmt.Errorf("%w: there is no such database; create it, owned by the user: "+
			"%w: %w", store.ErrUnavailable, store.ErrRefused, err)
	// connection, state of the transaction, resources, a state that does not allow it, operators,
	// system, internal
	case "08", "25", "53", "55", "57", "58", "XX":
		return wrap(store.ErrUnavailable)
	}
	return err
}

func class(err *pgconn.PgError) string { return err.Code[:min(2, len(err.Code))] }

// again reports whether a transaction that failed with err can be run again, because it changed
// nothing.
func again(err error) bool {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		switch refused.Code {
		case serializationFailure, deadlockDetected, planOutdated:
			return true
		}
		return false
	}
	return pgconn.SafeToRetry(err)
}

// lost reports whether the connection failed, so that a transaction which only reads can be run
// again on another one.
func lost(err error) bool {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return class(refused) == "08" || strings.HasPrefix(refused.Code, "57P")
	}
	return err != nil && !isOurs(err) && !errors.Is(err, pgx.ErrNoRows) &&
		!errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
}
