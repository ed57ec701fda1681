package s3

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"github.com/minio/minio-go/v7"

	"github.com/tidefill/tidefill/store"
)

// errStalled ends a try that has transferred nothing for a while.
var errStalled = errors.New("the object storage transferred nothing for too long")

// errNoObject is the ErrNotFound of an object.
var errNoObject = fmt.Errorf("%w: no such object", store.ErrNotFound)

// errReplaced means that an open blob was replaced or deleted.
var errReplaced = fmt.Errorf("%w: the blob was deleted or replaced while it was read",
	store.ErrNotFound)

// errDamaged means that bytes do not have the checksum that they were stored with.
var errDamaged = errors.New("the bytes do not have their checksum")

// remedies maps the codes of errors that an operator can do something about.
var remedies = map[string]string{
	"NoSuchBucket": "the bucket does not exist: create it, or correct bucket, region and endpoint",
	"AccessDenied": "the credentials do not permit this request: grant them the actions that " +
		"docs/object-storage.md lists",
	"AllAccessDisabled":               "the account can't be used: ask its owner",
	"InvalidAccessKeyId":              wrongAccessKey,
	"XAdminUserNotFound":              wrongAccessKey,
	"SignatureDoesNotMatch":           "the secret key is wrong: correct the credentials",
	"ExpiredToken":                    "the session token has expired: renew the credentials",
	"InvalidToken":                    "the session token is wrong: correct the credentials",
	"RequestTimeTooSkewed":            "this machine's clock is wrong: synchronize it with NTP",
	"AuthorizationHeaderMalformed":    wrongRegion,
	"PermanentRedirect":               wrongRegion,
	"InvalidBucketName":               "the storage refuses the name of the bucket: correct it",
	"NotImplemented":                  "the storage lacks a part of S3: try tuning.checksum: md5",
	"KMS.NotFoundException":           "the encryption key does not exist: correct kms_key",
	"KMS.DisabledException":           "the encryption key is disabled: enable it",
	"InvalidEncryptionAlgorithmError": "the storage refuses the encryption: correct encryption",
}

const (
	wrongAccessKey = "the storage does not know the access key: correct the credentials"
	wrongRegion    = "the bucket is in another region: correct region and endpoint"
)

// codes of a full storage.
var fullCodes = map[string]bool{
	"QuotaExceeded": true, "XMinioStorageFull": true, "InsufficientCapacity": true,
	"XMinioAdminBucketQuotaExceeded": true, "EntityTooLargeForQuota": true,
}

// codes of names that no object of the storage can have.
var noNames = map[string]bool{
	"KeyTooLongError": true, "XMinioInvalidObjectName": true, "InvalidURI": true,
}

// responseOf returns the storage's own error, if err is one.
func responseOf(err error) (minio.ErrorResponse, bool) {
	var r minio.ErrorResponse
	ok := errors.As(err, &r)
	return r, ok
}

// retryable reports whether another try may succeed.
func retryable(err error) bool {
	r, ok := responseOf(err)
	if !ok {
		return !errors.Is(err, store.ErrNotFound) // the network
	}
	switch r.Code {
	case "BadDigest", "XAmzContentChecksumMismatch", "RequestTimeout", "SlowDown", "Throttling",
		"OperationAborted", "IncompleteBody", "ConditionalRequestConflict",
		// Storages that keep objects as files answer so where a delete of the last object of a
		// directory removes it before the object is put. No object of ours has the name of a
		// directory.
		"ExistingObjectIsDirectory":
		return true
	case "InsufficientStorage":
		return false
	}
	return !fullCodes[r.Code] && r.StatusCode != http.StatusInsufficientStorage &&
		r.StatusCode != http.StatusNotImplemented && (r.StatusCode >= 500 ||
		r.StatusCode == http.StatusTooManyRequests || r.StatusCode == http.StatusRequestTimeout)
}

// failure is an error of the storage, with the error of package store that callers distinguish.
type failure struct {
	kind   error
	text   string
	status int // of HTTP
	// refused: only an operator can end it
	refused bool
}

func (f *failure) Error() string { return f.kind.Error() + ": object storage: " + f.text }

// Unwrap returns the errors that callers distinguish.
func (f *failure) Unwrap() []error {
	if f.refused {
		return []error{f.kind, store.ErrRefused}
	}
	return []error{f.kind}
}

// translate returns the error that callers distinguish, with the remedy.
func translate(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, store.ErrNotFound) {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r, ok := responseOf(err)
	if !ok {
		var certificate *tls.CertificateVerificationError
		return &failure{kind: store.ErrUnavailable, text: err.Error(),
			refused: errors.As(err, &certificate)}
	}
	f := &failure{kind: store.ErrUnavailable, text: r.Code, status: r.StatusCode}
	if r.Message != "" {
		f.text += ": " + r.Message
	}
	switch {
	case noNames[r.Code]:
		return fmt.Errorf("%w: the storage refuses its name: %s", errNoObject, f.text)
	case r.Code == "NoSuchKey" || r.Code == "" && r.StatusCode == http.StatusNotFound:
		return errNoObject
	case r.StatusCode == http.StatusPreconditionFailed:
		return errReplaced
	case fullCodes[r.Code] || r.StatusCode == http.StatusInsufficientStorage:
		f.kind = store.ErrNoSpace
		f.text += ": free or grant space"
	case remedies[r.Code] != "":
		f.text = remedies[r.Code] + " (" + f.text + ")"
		f.refused = true
	default:
		f.text += fmt.Sprintf(" (HTTP %d)", r.StatusCode)
	}
	return f
}
