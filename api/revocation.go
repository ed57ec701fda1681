package api

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// errRevoked ends the requests of a key that is no longer known.
var errRevoked = errors.New("the API key was revoked")

// keyLifetime lasts from the keyring in which a key first stands to the one in which it no longer does.
// The contexts of its requests hang on it.
type keyLifetime struct {
	context.Context
	end context.CancelFunc
}

func newKeyLifetime() *keyLifetime {
	ctx, cancel := context.WithCancel(context.Background())
	return &keyLifetime{ctx, cancel}
}

// SetKeys replaces the keys. A key that stands for the same tenant and role as before goes on;
// requests of the others end. It returns how many keys are new and how many are gone. It must not
// be called with an empty keyring, which would let everybody in.
func (s *Server) SetKeys(ring *Keyring) (added, revoked int) {
	s.keysChange.Lock()
	defer s.keysChange.Unlock()
	old := s.keys.Load()
	ring, added = ring.continuing(old)
	s.keys.Store(ring)
	return added, old.retire(ring)
}

// continuing returns a copy of the keyring in which the keys that stood in old the same way have
// the life they had there.
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

// retire ends the lives of keys that don't go on in the next keyring.
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

// same returns the entry of the same key, tenant and role, nil if there is none.
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

// isOver reports whether the key was revoked. A daemon without keys has no lives.
func (l *keyLifetime) isOver() bool { return l != nil && l.Err() != nil }

// during returns a context that ends with the life of the key, and ends what the request reads
// then. Its end must be called.
func (l *keyLifetime) during(
	ctx context.Context, w http.ResponseWriter,
) (_ context.Context, end func()) {
	if l == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l, func() {
		cancel(errRevoked)
		http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
	})
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
