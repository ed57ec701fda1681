package api

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// errRevoked is the cause with which the requests of a revoked key are cancelled.
var errRevoked = errors.New("the API key was revoked")

// keyLifetime is a context that ends when the key is revoked. It is the parent of the contexts of
// the key's requests.
type keyLifetime struct {
	context.Context
	end context.CancelFunc
}

func newKeyLifetime() *keyLifetime {
	ctx, cancel := context.WithCancel(context.Background())
	return &keyLifetime{ctx, cancel}
}

// Keys says how many keys there are.
func (s *Server) Keys() string { return s.keys.Load().String() }

// SetKeys replaces the keys. A key with the same tenant and role as before stays valid; the
// requests of keys that are removed or changed are cancelled. It returns the numbers of new and
// revoked keys. The keyring must not be empty: requests would need no key.
func (s *Server) SetKeys(ring *Keyring) (added, revoked int) {
	s.keysChange.Lock()
	defer s.keysChange.Unlock()
	old := s.keys.Load()
	ring, added = ring.continuing(old)
	s.keys.Store(ring)
	return added, old.retire(ring)
}

// continuing returns a copy of the keyring in which keys that are unchanged since old keep their
// lifetime.
func (k *Keyring) continuing(old *Keyring) (ring *Keyring, added int) {
	ring = &Keyring{}
	for _, e := range k.keys {
		if before := old.same(e); before != nil {
			e.life = before.life
		} else {
			added++
		}
		ring.keys = append(ring.keys, e)
	}
	return ring, added
}

// retire ends the lifetime of each key that next does not contain unchanged.
func (k *Keyring) retire(next *Keyring) (revoked int) {
	if k == nil {
		return 0
	}
	for _, e := range k.keys {
		if next.same(e) == nil {
			e.life.end()
			revoked++
		}
	}
	return revoked
}

// same returns the entry with the same key, tenant and role; nil: none.
func (k *Keyring) same(e keyEntry) *keyEntry {
	if k == nil {
		return nil
	}
	for i, candidate := range k.keys {
		if candidate.hash == e.hash && candidate.owner == e.owner {
			return &k.keys[i]
		}
	}
	return nil
}

// isOver reports whether the key was revoked. It is false for a nil keyLifetime, which requests
// have while there are no keys.
func (l *keyLifetime) isOver() bool { return l != nil && l.Err() != nil }

// during returns a context that is cancelled when the key is revoked; reading the request's body
// then fails too. The caller must call end.
func (l *keyLifetime) during(
	ctx context.Context, w http.ResponseWriter,
) (_ context.Context, end func()) {
	if l == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l, func() {
		cancel(errRevoked)
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
	})
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
