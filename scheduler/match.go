package scheduler

import (
	"slices"
	"time"
)

// Match is one rule of a named queue: a job fits when every condition that is set holds.
type Match struct {
	// Tenants are globs, of which one must match the whole name: * is any run of characters, ? any
	// one. Empty: every tenant.
	Tenants []string `yaml:"tenants,omitempty"`
	// Models are globs like Tenants (a * crosses slashes). Empty: every model.
	Models []string `yaml:"models,omitempty"`
	// MinPriority is the lowest priority that fits. Absent: no lower limit.
	MinPriority *int `yaml:"min_priority,omitempty"`
	// MaxPriority is the highest priority that fits. Absent: no upper limit.
	MaxPriority *int `yaml:"max_priority,omitempty"`
	// MinWindow is the shortest window that fits; best effort counts as longer than any. 0: no
	// lower limit.
	MinWindow time.Duration `yaml:"min_window,omitempty"`
	// MaxWindow is the longest window that fits; best effort does not fit. 0: no upper limit.
	MaxWindow time.Duration `yaml:"max_window,omitempty"`
}

func (m Match) fits(j Job) bool {
	bestEffort := j.Window == 0
	return fitsAny(m.Tenants, j.Tenant) &&
		fitsAny(m.Models, j.Model) &&
		(m.MinPriority == nil || j.Priority >= *m.MinPriority) &&
		(m.MaxPriority == nil || j.Priority <= *m.MaxPriority) &&
		(j.Window >= m.MinWindow || bestEffort) &&
		(m.MaxWindow == 0 || j.Window <= m.MaxWindow && !bestEffort)
}

func fitsAny(globs []string, name string) bool {
	return len(globs) == 0 || slices.ContainsFunc(globs, func(glob string) bool {
		return globMatches(glob, name)
	})
}

// globMatches matches bytes and remembers only the last star, so that no pattern makes it slower
// than len(glob) * len(name).
func globMatches(glob, name string) bool {
	g, n := 0, 0
	star, resume := -1, 0
	for n < len(name) {
		switch {
		case g < len(glob) && glob[g] == '*':
			star, resume = g, n
			g++
		case g < len(glob) && (glob[g] == '?' || glob[g] == name[n]):
			g++
			n++
		case star >= 0:
			resume++
			g, n = star+1, resume
		default:
			return false
		}
	}
	for g < len(glob) && glob[g] == '*' {
		g++
	}
	return g == len(glob)
}
