package app

import (
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/tidefill/tidefill/autoscale/kube"
	"github.com/tidefill/tidefill/flowcontrol"
)

// sides follows the readings of the engines of pools in which some compute prompts and others
// generate tokens. A line needs both, so such a pool is metered by the side that is short: flow
// control plans with the engines of that side alone, which a line occupies one of. Counting both
// would give every line two places.
//
// Decode is taken to be the short side, which carries a line for nearly all of its time, unless
// requests wait for prefill, and more of them than for decode.
type sides struct {
	mu      sync.Mutex
	engines map[string]side // by the name of the runner
	short   map[string]shortSide
}

type side struct {
	pool    string
	role    kube.Role
	waiting float64
	at      time.Time // of the reading; zero: none
}

type shortSide struct {
	role  kube.Role
	other time.Time // since when the other side has been shorter; zero: it is not
}

const (
	// sideHold is the time for which the other side must be short to be the one that meters.
	sideHold = 15 * time.Second
	// sideReadings is the age up to which a reading counts.
	sideReadings = 30 * time.Second
)

// shortOf returns the side that meters a pool.
func (s *sides) shortOf(pool string) kube.Role {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, is := s.short[pool]; is {
		return known.role
	}
	return kube.Decode
}

// set replaces the engines of all pools.
func (s *sides) set(engines map[string]side) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, x := range engines {
		if known, is := s.engines[name]; is && known.pool == x.pool && known.role == x.role {
			engines[name] = known
		}
	}
	s.engines = engines
	maps.DeleteFunc(s.short, func(pool string, _ shortSide) bool {
		return !slices.ContainsFunc(slices.Collect(maps.Values(engines)), func(x side) bool {
			return x.pool == pool
		})
	})
}

// observe takes over a reading. It reports whether another side meters the engine's pool now.
func (s *sides) observe(now time.Time, engine string, r *flowcontrol.Reading) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, known := s.engines[engine]
	if !known || math.IsNaN(r.Waiting) {
		return false
	}
	x.waiting, x.at = r.Waiting, now
	s.engines[engine] = x
	waiting := map[kube.Role]float64{}
	count := map[kube.Role]float64{}
	for _, y := range s.engines {
		if y.pool == x.pool && now.Sub(y.at) <= sideReadings {
			waiting[y.role] += y.waiting
			count[y.role]++
		}
	}
	mean := func(role kube.Role) float64 { return waiting[role] / max(1, count[role]) }
	want := kube.Decode
	if mean(kube.Prefill) >= 1 && mean(kube.Prefill) > mean(kube.Decode) {
		want = kube.Prefill
	}
	is := s.short[x.pool]
	if is.role == kube.Both {
		is.role = kube.Decode
	}
	changed := false
	switch {
	case want == is.role:
		is.other = time.Time{}
	case is.other.IsZero():
		is.other = now
	case now.Sub(is.other) >= sideHold:
		is, changed = shortSide{role: want}, true
	}
	if s.short == nil {
		s.short = map[string]shortSide{}
	}
	s.short[x.pool] = is
	return changed
}
