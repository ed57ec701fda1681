package flowcontrol

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
)

// PolicyConfig is the configuration of one policy: a struct whose fields have yaml tags and doc
// comments. The documentation of configuration keys is generated from both.
type PolicyConfig interface {
	// Validate reports every fault. Each begins with the path of its field, such as "per_runner: ".
	Validate() error
}

// Settings holds the configuration of every registered policy by the policy's name, of those too
// that are not selected. It is shared between copies of a Config: never change it, use Config.With.
type Settings map[string]PolicyConfig

// defaultSettings returns the defaults of every registered policy.
func defaultSettings() Settings {
	all := Settings{}
	for _, name := range Policies() {
		if f, err := policies.Get(name); err == nil && f.Default != nil {
			all[name] = f.Default
		}
	}
	return all
}

// With returns c with the configuration of one policy replaced. It does not change c.
func (c Config) With(policy string, own PolicyConfig) Config {
	settings := maps.Clone(c.Settings)
	if settings == nil {
		settings = Settings{}
	}
	settings[policy] = own
	c.Settings = settings
	return c
}

// Select returns c with the policy selected and its configuration replaced. It does not change c.
func (c Config) Select(policy string, own PolicyConfig) Config {
	c = c.With(policy, own)
	c.Policy = policy
	return c
}

// OwnConfig returns the configuration of one policy. It panics if c has none of that type under
// that name: policies in tests that do not start from DefaultConfig have to add theirs.
func OwnConfig[C PolicyConfig](c Config, policy string) C {
	own, ok := c.Settings[policy].(C)
	if !ok {
		panic(fmt.Sprintf("flowcontrol: the configuration of policy %q is a %T, want a %T", policy,
			c.Settings[policy], own))
	}
	return own
}

// Selected returns the configuration of the selected policy; nil if it has none.
func (c Config) Selected() PolicyConfig { return c.Settings[c.Policy] }

// OnlySelected returns c without the settings of policies that are not selected, which change
// nothing. It does not change c.
func (c Config) OnlySelected() Config {
	c.Settings = Settings{c.Policy: c.Selected()}
	return c
}

// Equal reports whether a controller for one pool is the same by both configurations: they agree
// in all but the settings of policies that are not selected, Shadow and Pools.
func (c Config) Equal(other Config) bool {
	alike := func(c Config) Config {
		c = c.OnlySelected()
		c.Pools, c.Shadow = nil, Shadow{}
		return c
	}
	return reflect.DeepEqual(alike(c), alike(other))
}

// UnmarshalJSON reads what json.Marshal writes. It leaves out policies that are not registered.
func (s *Settings) UnmarshalJSON(text []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return err
	}
	all := Settings{}
	for name, own := range raw {
		f, err := policies.Get(name)
		if err != nil || f.Default == nil {
			continue
		}
		value := reflect.New(reflect.TypeOf(f.Default))
		value.Elem().Set(reflect.ValueOf(f.Default))
		if err := json.Unmarshal(own, value.Interface()); err != nil {
			return fmt.Errorf("settings of policy %q: %w", name, err)
		}
		all[name] = value.Elem().Interface().(PolicyConfig)
	}
	*s = all
	return nil
}
