package registry

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/tidefill/tidefill/internal/faults"
	"github.com/tidefill/tidefill/internal/strictyaml"
)

// schedulingKeys lists the keys of scheduling, in their order.
var schedulingKeys = []string{"completion_window", "priority", "provider_preference",
	"allow_preempt", "allow_spot", "max_concurrency", "request_timeout_seconds", "retry_policy"}

// Allowed returns the keys of scheduling that users of the profile may set.
func (p Profile) Allowed() []string {
	if p.Spec.Overrides.Scheduling != nil {
		return slices.Sorted(maps.Keys(p.Spec.Overrides.Scheduling))
	}
	return schedulingKeys
}

// Override returns the profile with other settings of scheduling, in JSON's syntax. A completion
// window and a priority are promises at the cost of others, so they can be lowered and not raised.
// The faults have paths below scheduling.
func (p Profile) Override(
	args map[string]json.RawMessage,
) (changed Profile, f faults.List) {
	allowed, changed := p.Allowed(), p
	s := &changed.Spec.Scheduling
	for _, name := range slices.Sorted(maps.Keys(args)) {
		path := "scheduling." + name
		if !slices.Contains(allowed, name) {
			f.Add(path, "can't be overridden with this profile; %s",
				strictyaml.Known(name, allowed))
			continue
		}
		one, value := member(name, args[name])
		if reason := unusable(value); reason != "" {
			f.Add(path, "%s", reason)
			continue
		}
		for _, fault := range strictyaml.Decode(one, "scheduling", s).Faults() {
			f = append(f, fault)
		}
		p.Spec.Overrides.Scheduling[name].check(&f, path, value, "profile")
	}
	if len(f) > 0 {
		return changed, f
	}
	f.AddAll("scheduling", joined(s.Validate()))
	if own, most := s.Window(), p.Spec.Scheduling.Window(); most > 0 && (own == 0 || own > most) {
		f.Add("scheduling.completion_window", "is %s, must be at most the profile's %s",
			s.CompletionWindow, p.Spec.Scheduling.CompletionWindow)
	}
	if s.Level() > p.Spec.Scheduling.Level() {
		f.Add("scheduling.priority", "is %s, must be at most the profile's %s", s.Priority,
			p.Spec.Scheduling.Priority)
	}
	return changed, f
}

// levels are the priorities of batches, by name. A batch without a profile has normal.
var levels = map[string]int{"high": 50, "normal": 0, "low": -50}

// Level returns the priority as a number.
func (s Scheduling) Level() int { return levels[cmp.Or(s.Priority, "normal")] }
