package tables

import (
	"time"

	"github.com/tidefill/tidefill/store"
)

// AtExpiry returns the upload as expired if it is pending and its time has passed. The row stays
// pending.
func AtExpiry(u store.Upload, expiry time.Time) store.Upload {
	if u.State == store.UploadPending && !u.ExpiresAt.IsZero() && !u.ExpiresAt.After(expiry) {
		u.State = store.UploadExpired
	}
	return u
}
