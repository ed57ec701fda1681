package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidefill/tidefill/store"
)

// fingerprint returns a hash that distinguishes request bodies. The first part is the kind of
// object, so that a key cannot be used for two kinds.
func fingerprint(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// idempotencyKeyOf returns the request's Idempotency-Key; empty: none.
func idempotencyKeyOf(r *http.Request) (string, error) {
	key := r.Header.Get("Idempotency-Key")
	if len(key) > 255 {
		return "", invalid("", "invalid_value",
			"The Idempotency-Key has %d bytes, the limit is 255.", len(key))
	}
	return key, nil
}

// creation describes how createOnce creates or finds the object of a POST.
type creation[T any] struct {
	Key         string // the request's Idempotency-Key; empty: always create
	Fingerprint string // of the request's body
	ID          string // of the object that Create makes, unless it is made again
	// Create makes the object with an ID. store.ErrExists: another process has made it.
	Create func(ctx context.Context, id string) (T, error)
	// Abandon makes sure that nothing can be created with an ID any more. nil: an object that is
	// made again gets the ID of the first request. It is set where bytes are stored under ID.
	Abandon func(ctx context.Context, id string) error
	// Load returns the object, or store.ErrNotFound.
	Load func(ctx context.Context, id string) (T, error)
}

// maxCreationTime is the age from which the key of an object that can be abandoned, and does not
// exist, no longer belongs to a request in progress, unless this process is handling it. A key is
// stored just before its object. An older key without an object was left by a crash, or its object
// was deleted.
const maxCreationTime = 10 * time.Second

// createOnce creates the object, or returns the one that an earlier request with the same key has
// created. fresh reports whether it was created now.
func createOnce[T any](
	ctx context.Context, s *Server, c creation[T],
) (made T, fresh bool, err error) {
	if c.Key == "" {
		made, err = c.Create(ctx, c.ID)
		return made, true, err
	}
	tenant := tenantOf(ctx)
	for {
		claim := fmt.Sprintf("%s %s %d", c.Fingerprint, c.ID, s.now().UnixMilli())
		stored, fresh, err := s.meta.Remember(ctx, tenant, c.Key, claim,
			s.config().IdempotencyRetention)
		if err != nil {
			return made, false, fmt.Errorf("store idempotency key: %w", err)
		}
		if fresh || stored == claim { // the store may have tried twice
			return create(ctx, s, c, c.ID, claim)
		}
		first, id, at, err := parseClaim(stored)
		if err != nil {
			return made, false, err
		}
		if first != c.Fingerprint {
			return made, false, invalid("", "idempotency_key_reuse",
				"This Idempotency-Key was used with another request body; use a new key for a "+
					"new request.")
		}
		made, err = c.Load(ctx, id)
		if !errors.Is(err, store.ErrNotFound) {
			return made, false, err
		}
		if _, busy := s.creating.Load(tenant + " " + c.Key); busy ||
			c.Abandon != nil && s.now().Sub(at) < maxCreationTime {
			return made, false, &httpError{
				Status: http.StatusConflict, Type: invalidRequest, Code: "idempotency_in_progress",
				Message: "The first request with this Idempotency-Key is still being handled; " +
					"send the request again in a moment.",
				RetryAfter: time.Second,
			}
		}
		if c.Abandon == nil {
			// With the same ID, a first process that is only held up, or whose database is, can't
			// make a second object.
			return create(ctx, s, c, id, stored)
		}
		if err := c.Abandon(ctx, id); err != nil {
			return made, false, fmt.Errorf("take over idempotency key: %w", err)
		}
		// It may have been created just before.
		if made, err = c.Load(ctx, id); !errors.Is(err, store.ErrNotFound) {
			return made, false, err
		}
		if err := s.meta.Forget(ctx, tenant, c.Key, stored); err != nil {
			return made, false, fmt.Errorf("remove idempotency key: %w", err)
		}
	}
}

// create creates the object of a key that has the value claim, or returns the object that another
// process has created in the meantime.
func create[T any](
	ctx context.Context, s *Server, c creation[T], id, claim string,
) (made T, fresh bool, err error) {
	tenant := tenantOf(ctx)
	creating := tenant + " " + c.Key
	s.creating.Store(creating, true)
	defer s.creating.Delete(creating)
	made, err = c.Create(ctx, id)
	switch {
	case err == nil:
		return made, true, nil
	case errors.Is(err, store.ErrExists):
		made, err = c.Load(ctx, id)
		return made, false, err
	case outcomeUnknown(err):
		// The key stays, since the object may exist, or come to exist: the request is sent again.
	default:
		ctx, cancel := cleanupContext(ctx)
		defer cancel()
		err = errors.Join(err, s.meta.Forget(ctx, tenant, c.Key, claim))
	}
	return made, false, err
}

// outcomeUnknown reports whether a write that failed may have happened, or may happen yet.
func outcomeUnknown(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded)
}

func parseClaim(stored string) (fingerprint, id string, at time.Time, err error) {
	fields := strings.Fields(stored)
	if len(fields) == 3 {
		var millis int64
		if millis, err = strconv.ParseInt(fields[2], 10, 64); err == nil {
			return fields[0], fields[1], time.UnixMilli(millis), nil
		}
	}
	return "", "", at, fmt.Errorf("stored idempotency key has the unknown value %q", stored)
}
