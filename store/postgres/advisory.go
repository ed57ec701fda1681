package postgres

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// Kinds of names that transactions lock. Two different names have the same lock in one of 2^64
// cases, and then wait for each other without need.
const (
	lockClaims = "claims" // of a batch
	lockName   = "lock"   // of Locks
	lockLead   = "lead"   // of Leads
	lockBlob   = "blob"   // a blob whose references change
)

// lockKeys returns the advisory locks of the names in the order in which all transactions take
// them, so that they don't deadlock.
func lockKeys(kind string, names ...string) []int64 {
	keys := make([]int64, len(names))
	for i, name := range names {
		sum := sha256.Sum256([]byte(kind + "\x00" + name))
		keys[i] = int64(binary.BigEndian.Uint64(sum[:8]))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// lock waits for the names, until the end of the transaction. Statements after it see what earlier
// holders have committed.
func (s *steps) lock(kind string, names ...string) {
	s.do("SELECT pg_advisory_xact_lock(key) FROM unnest(@keys::bigint[]) AS key",
		args{"keys": lockKeys(kind, names...)})
}

// share is lock for transactions that do not exclude each other, only those of lock.
func (s *steps) share(kind string, names ...string) {
	if len(names) > 0 {
		s.do("SELECT pg_advisory_xact_lock_shared(key) FROM unnest(@keys::bigint[]) AS key",
			args{"keys": lockKeys(kind, names...)})
	}
}
