package store

import (
	"errors"
	"strconv"
	"strings"
)

// ResultPrefix begins the keys of all blobs in storages of profiles.
const ResultPrefix = "results"

// ResultsOf begins the keys of a batch's blobs in the storage of its profile.
func ResultsOf(batch string) string { return ResultPrefix + "/" + batch }

// ResultKey returns the key of a result file there, as written at an epoch of the batch's end.
func ResultKey(batch, file string, epoch int64) string {
	return ResultsOf(batch) + "/" + file + "." + strconv.FormatInt(epoch, 10)
}

// BatchOfResult returns the batch in a ResultKey; empty: it is none.
func BatchOfResult(key string) string {
	rest, is := strings.CutPrefix(key, ResultPrefix+"/")
	batch, _, below := strings.Cut(rest, "/")
	if !is || !below {
		return ""
	}
	return batch
}

// StorageError is an error of a Storage beside that of the backend. It is ErrUnavailable, since the
// backend works. What it wraps may be ErrNoSpace or ErrRefused besides.
type StorageError struct {
	Storage Storage
	// Cause completes, for users, "the storage can't be used: ". It has no secret, address or path.
	Cause string
	Err   error // for the log
	// Delivery is set for the bucket of the batch's Options.OutputURL.
	Delivery bool
}

// Waiting returns a sentence for users: why the results of a batch wait for the storage.
func (e *StorageError) Waiting() string {
	what := "The storage of the batch's profile"
	if e.Delivery {
		what = "The bucket of the batch's output_url"
	}
	return what + " does not take its results: " + e.Cause + "."
}

// Error returns which storage it is, and the whole error.
func (e *StorageError) Error() string { return e.Storage.String() + ": " + e.Err.Error() }

// Unwrap returns the errors that callers distinguish.
func (e *StorageError) Unwrap() []error { return []error{ErrUnavailable, e.Err} }

// String returns the kind of the storage and the name of its bucket.
func (s Storage) String() string {
	if s.Backend == "local" {
		return "local storage " + s.Bucket
	}
	return s.Backend + " bucket " + s.Bucket
}

// NoPlace returns the error of a process that opens no storages of profiles.
func NoPlace(s Storage) error {
	return &StorageError{Storage: s, Cause: "this process opens no storages of profiles",
		Err: errors.New("this process opens no storages of profiles")}
}
