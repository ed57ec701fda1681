package scheduler

import (
	"slices"
	"time"
)

// Match is a rule of a named queue. A job matches if it meets every condition that is set.
type Match struct {
	// Tenants lists patterns of which one must match the tenant's name: * matches any characters, ?
	// one character. Empty: every tenant.
	Tenants []string `yaml:"tenants,omitempty"`
	// Models lists patterns of the model's name, as Tenants. A * matches slashes too. Empty: every
	// model.
	Models []string `yaml:"models,omitempty"`
	// MinPriority is the lowest priority that matches. Absent: no lower limit.
	MinPriority *int `yaml:"min_priority,omitempty"`
	// MaxPriority is the highest priority that matches. Absent: no upper limit.
	MaxPriority *int `yaml:"max_priority,omitempty"`
	// MinWindow is the shortest window that matches. Best effort counts as the longest. 0: no lower
	// limit.
	MinWindow time.Duration `yaml:"min_window,omitempty"`
	// MaxWindow is the longest window that matches. Best effort does not match. 0: no upper limit.
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

// globMatches matches by bytes. It backtracks to the last star only, so it needs at most len(glob)
// * len(name) steps.
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
