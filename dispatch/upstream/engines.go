package upstream

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// A gateway has one address and several engines, and decides itself which engine gets a line. Flow
// control needs the engines: the time of iterations and the number of requests are true of one
// engine only. So each engine that shows itself is a runner of its own for flow control, which
// knows that lines are routed to it. Its lines all go to the gateway. While no engine shows itself,
// the gateway is one runner of which nothing is known but the time of its answers.

const (
	// engineGone is the time after its last reading from which on an engine counts as gone.
	// Until then it is flow control that trusts it less and less.
	engineGone = 30 * time.Second
	// fullestWithin is the greatest age of a reading that shows how full an engine is.
	fullestWithin = 15 * time.Second
	// maxEngines limits the engines behind a gateway. Prometheus may select any number of series.
	maxEngines = 1024
)

// engines are those behind a gateway, by the name of their runner. It is safe for concurrent use.
type engines struct {
	// lists reports whether the gateway is configured with an engine. Nil: with any.
	lists func(name string) bool

	mu    sync.Mutex
	known map[string]*engineState
}

type engineState struct {
	sampled time.Time // of the last reading
	at      time.Time // when it came
	kvUsed  float64   // NaN: not shown
}

// see takes over a reading of an engine. It returns the reading for flow control, and whether the
// engine counts only since now. Lines cannot be kept from the engine whose KV cache is the fullest,
// so every engine is taken for as full.
func (e *engines) see(
	now time.Time, name string, r *flowcontrol.Reading,
) (_ *flowcontrol.Reading, isNew bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	state := e.known[name]
	if state == nil {
		if len(e.known) >= maxEngines || e.lists != nil && !e.lists(name) {
			return r, false
		}
		if e.known == nil {
			e.known = map[string]*engineState{}
		}
		state = &engineState{}
		e.known[name] = state
	}
	if r.Sampled.After(state.sampled) {
		isNew = now.Sub(state.at) > engineGone
		state.sampled, state.at, state.kvUsed = r.Sampled, now, r.KVUsed
	}
	fullest := r.KVUsed
	for _, other := range e.known {
		if now.Sub(other.at) <= fullestWithin && other.kvUsed > fullest {
			fullest = other.kvUsed
		}
	}
	if fullest > r.KVUsed && !math.IsNaN(r.KVUsed) {
		changed := *r
		changed.KVUsed = fullest
		r = &changed
	}
	return r, isNew
}

// names lists the engines that have shown themselves lately, and forgets those that have been gone
// for long.
func (e *engines) names(now time.Time) (names []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.known, func(_ string, s *engineState) bool {
		return now.Sub(s.at) > 2*engineGone
	})
	for name, s := range e.known {
		if now.Sub(s.at) <= engineGone {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// inherit takes over the engines of an earlier configuration that are in this one too.
func (e *engines) inherit(earlier *engines) {
	earlier.mu.Lock()
	defer earlier.mu.Unlock()
	e.known = map[string]*engineState{}
	for name, s := range earlier.known {
		if e.lists(name) {
			state := *s
			e.known[name] = &state
		}
	}
}

// ModeGateway is the Mode of an upstream with several engines behind its address.
const ModeGateway = "gateway"

// IsGateway reports whether several engines are behind the address.
func (u Upstream) IsGateway() bool { return u.Mode == ModeGateway }

// Gateway returns the name of an upstream that is one; empty: it is an engine.
func (u *Runner) Gateway() string {
	if u.IsGateway() {
		return u.Name
	}
	return ""
}

// EngineRunner returns the name of the runner that stands for an engine behind a gateway.
func EngineRunner(gateway, engine string) string { return gateway + "/" + engine }

// lists reports whether a planned runner is one of the engines that the gateway of a name is
// configured with.
func (u Upstream) lists(name, planned string) bool {
	engine, behind := strings.CutPrefix(planned, name+"/")
	return behind && slices.ContainsFunc(u.Engines, func(entry string) bool {
		name, err := EngineName(entry)
		if err != nil || name != "" {
			return name == engine
		}
		matches, err := regexp.MatchString("^(?:"+entry+")$", engine)
		return matches && err == nil
	})
}

// Planned returns the runners that stand for an upstream in planning, and how lines get to their
// engines.
func (u *Runner) Planned(now time.Time) (names []string, access flowcontrol.Access) {
	if !u.IsGateway() {
		return []string{u.Name}, flowcontrol.Direct
	}
	if names = u.engines.names(now); len(names) > 0 {
		return names, flowcontrol.Routed
	}
	return []string{u.Name}, flowcontrol.Opaque
}

// Lookup returns the upstream that a planned runner stands for; nil: none.
func Lookup(runners map[string]*Runner, planned string) *Runner {
	if u := runners[planned]; u != nil {
		return u
	}
	var found *Runner
	for _, u := range runners {
		if u.IsGateway() && strings.HasPrefix(planned, u.Name+"/") &&
			(found == nil || len(u.Name) > len(found.Name)) {
			found = u
		}
	}
	return found
}
