package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/tidefill/tidefill/store"
)

const (
	// saveKeyUsesEvery is the time between two saves of when keys were last used.
	saveKeyUsesEvery = time.Minute
	// saveKeyUsesLimit is the longest time of a save, for which the end of the process may wait.
	saveKeyUsesLimit = 10 * time.Second
)

// KeyUses keeps when API keys were last used.
type KeyUses interface {
	NoteKeys(ctx context.Context, uses []store.KeyUse, before time.Time) error
	UsedKeys(ctx context.Context) ([]store.KeyUse, error)
}

type keyHash [sha256.Size]byte

// keyUses holds the last uses of keys that the store does not have yet. Only keys of the keyring
// are noted, so there are few.
type keyUses struct {
	mu      sync.Mutex
	unsaved map[keyHash]time.Time
}

// note records that a key is used at a time.
func (u *keyUses) note(hash keyHash, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.unsaved == nil {
		u.unsaved = map[keyHash]time.Time{}
	}
	if at.After(u.unsaved[hash]) {
		u.unsaved[hash] = at
	}
}

func (u *keyUses) all() map[keyHash]time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.unsaved)
}

// saved removes uses that the store has, unless the key was used again meanwhile.
func (u *keyUses) saved(uses map[keyHash]time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for hash, at := range uses {
		if u.unsaved[hash].Equal(at) {
			delete(u.unsaved, hash)
		}
	}
}

// keepKeyUses saves the uses of keys each minute, and when ctx ends.
func (s *Server) keepKeyUses(ctx context.Context) {
	ticker := time.NewTicker(saveKeyUsesEvery)
	defer ticker.Stop()
	failing := false
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-ticker.C:
		}
		err := s.saveKeyUses(ctx)
		if err != nil && !failing {
			s.log.WarnContext(ctx, "could not save when API keys were last used; it is tried "+
				"again each minute", "error", err)
		}
		failing = err != nil
	}
}

func (s *Server) saveKeyUses(ctx context.Context) error {
	unsaved := s.keyUses.all()
	if len(unsaved) == 0 {
		return nil
	}
	var uses []store.KeyUse
	for hash, at := range unsaved {
		uses = append(uses, store.KeyUse{Hash: hex.EncodeToString(hash[:]), At: at.UTC()})
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveKeyUsesLimit)
	defer cancel()
	if err := s.meta.NoteKeys(ctx, uses, s.deps.Expiry().Add(-store.KeyUseRetention)); err != nil {
		return err
	}
	s.keyUses.saved(unsaved)
	return nil
}

// lastUses returns when keys were last used, by hash in hex digits. Uses of the last minute in
// other processes may be missing.
func (s *Server) lastUses(ctx context.Context) (map[string]time.Time, error) {
	unsaved := s.keyUses.all() // before the store, so that none is missed by a save between
	uses, err := s.meta.UsedKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	last := make(map[string]time.Time, len(uses)+len(unsaved))
	for _, u := range uses {
		last[u.Hash] = u.At
	}
	for hash, at := range unsaved {
		key := hex.EncodeToString(hash[:])
		last[key] = later(last[key], at)
	}
	return last, nil
}
