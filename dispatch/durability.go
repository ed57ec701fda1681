package dispatch

import (
	"fmt"
	"time"

	"github.com/tidefill/tidefill/store"
)

const (
	// leaseCommits is the number of commits of the store that must fit into a lease, so that a slow
	// one does not lose the chunks.
	leaseCommits = 4
	// settleCommits is the number of commits of the store that a shutdown waits for.
	settleCommits = 10
)

// checkDurability reports settings that the store is too slow for.
func (c Config) checkDurability(d store.Durability) error {
	if c.LeaseTTL < leaseCommits*d.Delay {
		return fmt.Errorf(
			"tuning.lease_ttl: is %v, must be at least %v: the store commits results "+
				"every %v", c.LeaseTTL, leaseCommits*d.Delay, d.Delay)
	}
	if c.Memory/3 < d.Bytes { // see newMemory
		return fmt.Errorf("memory: is %d, must be at least %d: a third of it holds results until "+
			"the store has committed them, %d bytes at a time", c.Memory, 3*d.Bytes, d.Bytes)
	}
	return nil
}

// settleLimit returns the longest time that a shutdown waits for the journals.
func settleLimit(d store.Durability) time.Duration {
	return max(settleTime, settleCommits*d.Delay)
}
