package scenario

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Fault is something that happens to replicas, or to the daemon.
type Fault struct {
	At   time.Duration `yaml:"at"`
	Kind FaultKind     `yaml:"kind"`
	// Pool is the name of one of BatchPools. Empty: the pool that serves the interactive traffic.
	Pool string `yaml:"pool"`
	// Replicas by number, from 0, in the order in which they were first asked for. Empty: all that
	// exist at the time. A replica that does not exist at the time is skipped.
	Replicas []int `yaml:"replicas"`
	// For is the duration of the fault. For a crash it is the time until the replica is ready
	// again; 0: never. For a stall it is the time that the next iteration takes longer. For a
	// restart it is the time until the daemon starts.
	For time.Duration `yaml:"for"`
	// Every repeats the fault at this interval until the end of the run; 0: it happens once.
	Every time.Duration `yaml:"every" json:",omitempty"`
	// Forget makes a restart of the daemon one without what it has learned.
	Forget bool `yaml:"forget"`
	// Factor multiplies the time of an iteration of a slow replica.
	Factor float64 `yaml:"factor"`
	// Lost is what happens to a crashed replica's interactive requests: retried (the router sends
	// them to another replica, and the user waits longer) or missed.
	Lost Lost `yaml:"lost"`
}

// FaultKind is what happens.
type FaultKind string

// The kinds of faults.
const (
	Crash FaultKind = "crash"
	Slow  FaultKind = "slow"
	Stall FaultKind = "stall"
	Flush FaultKind = "flush" // the prefix cache drops what is not in use
	Shed  FaultKind = "shed"  // batch lines are answered 429
	// Batch lines get an answer at once that is an error or none of the API. Of overlapping faults
	// of these kinds, the last one to begin applies.
	Fail   FaultKind = "fail"   // 500
	Deny   FaultKind = "deny"   // 401, as for a wrong key
	Garble FaultKind = "garble" // 200, and a body of another shape
	// Restart is of the daemon, not of a replica: it is killed and starts again.
	Restart FaultKind = "restart"
)

var faultKinds = []FaultKind{Crash, Slow, Stall, Flush, Shed, Fail, Deny, Garble, Restart}

// lasting are the kinds that must give their duration.
var lasting = []FaultKind{Slow, Stall, Shed, Fail, Deny, Garble}

// minEvery is the shortest interval at which a fault is repeated.
const minEvery = time.Second

// EachFault returns the scenario's faults, with an own one for each time that one is repeated.
func (s Scenario) EachFault() []Fault {
	var each []Fault
	for _, f := range s.Faults {
		each = append(each, f)
		for f.Every > 0 && f.At+f.Every < s.Horizon {
			f.At += f.Every
			each = append(each, f)
		}
	}
	return each
}

// Restarts reports whether the daemon is restarted.
func (s Scenario) Restarts() bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool { return f.Kind == Restart })
}

// Lost is what happens to interactive requests whose replica is lost.
type Lost string

const (
	Retried Lost = "retried"
	Missed  Lost = "missed"
)

func (s Scenario) validateFaults() error {
	var all problems
	for i, f := range s.Faults {
		path := fmt.Sprintf("faults[%d]", i)
		all.check(f.At >= 0 && f.At < s.Horizon, "%s.at is %s, want 0 to below the horizon, %s",
			path, f.At, s.Horizon)
		known := slices.Contains(faultKinds, f.Kind)
		all.check(known, "%s.kind is %q, want one of %q", path, f.Kind, faultKinds)
		all.check(f.For >= 0 && f.For <= maxHorizon, "%s.for is %s, want 0 to %s", path, f.For,
			maxHorizon)
		all.check(!slices.Contains(lasting, f.Kind) || f.For > 0,
			"%s.for is 0; say how long it lasts", path)
		all.check(f.Every == 0 || f.Every >= minEvery && f.Every > f.For,
			"%s.every is %s, want 0 or %s or more, and more than for, %s", path, f.Every, minEvery,
			f.For)
		all.check(f.Kind != Flush || f.For == 0,
			"%s.for is %s, but a cache is flushed in no time; remove it", path, f.For)
		all.check(f.Kind != Slow || f.Factor > 0 && f.Factor <= 1000,
			"%s.factor is %v, want above 0 and at most 1000; 2 makes iterations take twice as long",
			path, f.Factor)
		all.check(f.Kind == Slow || !known || f.Factor == 0,
			"%s.factor is of the kind %s; remove it", path, Slow)
		all.check(f.Kind == Crash || !known || f.Lost == "", "%s.lost is of the kind %s; remove it",
			path, Crash)
		all.check(f.Kind == Restart || !known || !f.Forget,
			"%s.forget is of the kind %s; remove it", path, Restart)
		all.check(f.Kind != Restart || f.Pool == "" && len(f.Replicas) == 0,
			"%s is a restart of the daemon; remove pool and replicas", path)
		all.check(f.Lost == "" || f.Lost == Retried || f.Lost == Missed,
			"%s.lost is %q, want %q or %q", path, f.Lost, Retried, Missed)
		most, ok := s.largestPoolSize(f.Pool)
		all.check(
			ok, "%s.pool is %q, want nothing for the shared pool or the name of one of batch_pools",
			path, f.Pool)
		for _, n := range f.Replicas {
			all.check(n >= 0 && (!ok || n < most),
				"%s.replicas holds %d; the pool has replicas 0 to %d", path, n, most-1)
		}
	}
	return errors.Join(all...)
}
