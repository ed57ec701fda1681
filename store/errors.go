package store

import "errors"

// Errors that callers distinguish. Backends wrap them with the operation and its object.
var (
	// ErrNotFound: no such object, or it belongs to another tenant, or it is deleted or expired.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the object has changed since it was read; read it again and decide again.
	ErrConflict = errors.New("changed meanwhile")
	// ErrExists: there is an object with this id already.
	ErrExists = errors.New("exists already")
	// ErrFenced: a newer claim exists; the holder of the older one must stop its work.
	ErrFenced = errors.New("fenced off by a newer claim")
	// ErrNoSpace: the medium is full. Nothing that was reported as written is lost; try again when
	// there is free space.
	ErrNoSpace = errors.New("no space left")
	// ErrUnavailable: the store can't be reached or accepts no writes now. For example another
	// process holds its lock, its directory is missing, or its medium reports errors. Nothing that
	// was reported as written is lost; try again later.
	ErrUnavailable = errors.New("store is unavailable")
	// ErrRefused is wrapped besides ErrUnavailable by errors that only an operator can end: the
	// credentials are wrong, there is no such database or bucket, or the user may not write the
	// data directory. A start fails at once.
	ErrRefused = errors.New("needs an operator")
	// ErrOlder: the records were restored to a time before the newest bytes.
	ErrOlder = errors.New("the database is older than its files")
	// ErrBadCursor: the position from which a listing or the changes should continue is unknown.
	ErrBadCursor = errors.New("unknown cursor")
)
