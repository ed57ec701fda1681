package dispatch_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/store"
)

// slowJournals are journals of another durability.
type slowJournals struct {
	dispatch.Journals
	durability store.Durability
}

func (j slowJournals) Durability() store.Durability { return j.durability }

func TestBoundsFollowTheDurabilityOfTheStore(t *testing.T) {
	for _, test := range []struct {
		durability store.Durability
		memory     int64
		lease      time.Duration
		want       string // part of the error; empty: none
	}{
		{store.Durability{Delay: 20 * time.Millisecond, Bytes: 1 << 20}, 3 << 20, 3 * time.Second,
			""},
		{store.Durability{Delay: time.Second, Bytes: 4 << 20}, 12 << 20, 4 * time.Second, ""},
		{store.Durability{Delay: time.Second, Bytes: 4 << 20}, 12 << 20, 3 * time.Second,
			"tuning.lease_ttl: is 3s, must be at least 4s"},
		{store.Durability{Delay: time.Second, Bytes: 4 << 20}, 11 << 20, 15 * time.Second,
			"memory: is 11534336, must be at least 12582912"},
	} {
		w := newWorld(t)
		cfg := dispatch.DefaultConfig()
		cfg.Memory, cfg.LeaseTTL = test.memory, test.lease
		deps := w.deps("a")
		deps.Journals = slowJournals{deps.Journals, test.durability}
		_, err := dispatch.New(cfg, deps)
		if test.want == "" && err != nil ||
			test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%+v with memory %d and lease %v: got %v, want %q", test.durability,
				test.memory, test.lease, err, test.want)
		}
	}
}
