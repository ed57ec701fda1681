package scenario

import (
	"errors"
	"time"
)

// Flow is what Tidefill knows of the use case that a class of traffic belongs to, where requests
// pass through it.
type Flow struct {
	// Class is one of those of the configuration. Empty: standard.
	Class string `yaml:"class" json:",omitempty"`
	// Weight is that of the use case among those of its class. 0: 1.
	Weight float64 `yaml:"weight" json:",omitempty"`
	// Tenant that sends the requests.
	Tenant string `yaml:"tenant" json:",omitempty"`
	// Objective is the longest average time per output token, from a request's arrival to its last
	// byte. 0: none.
	Objective time.Duration `yaml:"objective" json:",omitempty"`
	// Deadline is the time in which a request must have started. 0: as its class says.
	Deadline time.Duration `yaml:"deadline" json:",omitempty"`
}

func (f Flow) validate() error {
	var all problems
	all.check(f.Weight == 0 || f.Weight >= 0.001 && f.Weight <= 1000,
		"weight is %v, want 0 for 1, or 0.001 to 1000", f.Weight)
	all.check(f.Objective >= 0 && f.Objective <= time.Minute,
		"objective is %s, want 0 for none or up to 1m for each token", f.Objective)
	all.check(f.Deadline >= 0 && f.Deadline <= 24*time.Hour,
		"deadline is %s, want 0 for that of the class or up to 24h", f.Deadline)
	return errors.Join(all...)
}

// validateFlows checks that flows are given only where requests pass through Tidefill.
func (s Scenario) validateFlows() error {
	var all problems
	check := func(path string, f Flow) {
		all.check(f == Flow{} || s.Inline(),
			"%s is of requests that pass through Tidefill; set pool.router to %s, or remove it",
			path, Inline)
		all.add(path, f.validate())
	}
	check("interactive.flow", s.Interactive.Flow)
	for i, c := range s.Interactive.Classes {
		check(classPath(i)+".flow", c.Flow)
	}
	all.check(!s.Inline() || s.Pool.RouterView == 0,
		"pool.router_view is %s, but with the router %s there is none; remove it",
		s.Pool.RouterView, Inline)
	return errors.Join(all...)
}
