package flowcontrol

import "github.com/tidefill/tidefill/internal/faults"

// Shadow configures a second policy that observes a pool and changes nothing. What it would allow
// is published beside what the pool's policy allows, so that a policy or its settings can be tried
// on real traffic.
type Shadow struct {
	// Policy is the name of the shadow's policy, which may be that of the pool. Empty: there is no
	// shadow. Default: empty.
	Policy string `yaml:"policy"`
	// Settings are the shadow's configurations of policies, each in a section of the policy's name,
	// like those of the pool. They do not follow the pool's: what is not set has its default.
	Settings Settings `yaml:",inline" config:"unlisted"`
}

// IsZero reports whether there is no shadow.
func (s Shadow) IsZero() bool { return s.Policy == "" }

// ForShadow returns the configuration of the shadow's controller: that of the pool with the
// shadow's policy and its settings. ok is false if there is no shadow.
func (c Config) ForShadow() (shadow Config, ok bool) {
	shadow = c
	shadow.Policy, shadow.Settings, shadow.Shadow = c.Shadow.Policy, c.Shadow.Settings, Shadow{}
	return shadow, c.Shadow.Policy != ""
}

func (c Config) validateShadow(all *faults.List) {
	if shadow, ok := c.ForShadow(); ok {
		shadow.validatePolicy("shadow.", all)
	}
}
