package store

import "errors"

// Conditions that callers branch on. Backends wrap them with the operation and its subject.
var (
	// ErrNotFound: no such object, or it belongs to another tenant, or it is deleted or expired.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the object changed since it was read; read it again and decide anew.
	ErrConflict = errors.New("changed meanwhile")
	// ErrExists: an object with this id is there already.
	ErrExists = errors.New("exists already")
	// ErrFenced: a newer claim exists; the holder of the older one must stop and forget.
	ErrFenced = errors.New("fenced off by a newer claim")
	// ErrNoSpace: the medium is full. Nothing that was reported as written is harmed; try again
	// when there is room.
	ErrNoSpace = errors.New("no space left")
	// ErrUnavailable: the store can't be reached or doesn't take writes now: another process holds
	// its lock, its directory is gone, its medium reports errors. Nothing that was reported as
	// written is harmed; try again later.
	ErrUnavailable = errors.New("store is unavailable")
	// ErrBadCursor: the position from which a listing or the changes should continue is unknown.
	ErrBadCursor = errors.New("unknown cursor")
)
