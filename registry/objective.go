package registry

import "github.com/tidefill/tidefill/internal/faults"

// InferenceObjective is the priority of requests that name it in a header, as the Gateway API
// Inference Extension has it.
type InferenceObjective struct {
	// Name is what requests name.
	Name string `yaml:"name"`
	// Namespace and APIVersion are those of the object.
	Namespace  string                 `yaml:"namespace"`
	APIVersion string                 `yaml:"apiVersion"`
	Spec       InferenceObjectiveSpec `yaml:"spec"`
}

// InferenceObjectiveSpec is what is used of the object.
type InferenceObjectiveSpec struct {
	// Priority is above 0 for requests that are preserved, and below 0 for those that are shed
	// first. Default: 0.
	Priority int `yaml:"priority"`
	// PoolRef names the InferencePool that the objective is for.
	PoolRef PoolRef `yaml:"poolRef"`
}

// ObjectiveHeaders lists the headers in which a request may name its InferenceObjective, the one
// that counts first.
var ObjectiveHeaders = []string{"X-Llm-D-Inference-Objective", "X-Gateway-Inference-Objective"}

// Class returns the class of the priority.
func (o InferenceObjective) Class() string {
	switch {
	case o.Spec.Priority > 0:
		return ClassCritical
	case o.Spec.Priority < 0:
		return ClassFlex
	}
	return ClassStandard
}

// Key returns the name, since requests name no namespace.
func (o InferenceObjective) Key() Key { return Key{Name: o.Name} }

// WithDefaults implements Item.
func (o InferenceObjective) WithDefaults() InferenceObjective { return o }

// Validate returns every fault.
func (o InferenceObjective) Validate() faults.List {
	var f faults.List
	validText(&f, "name", o.Name, maxModelName)
	return f
}

// warnings implements Item.
func (o InferenceObjective) warnings() []string { return nil }

// Objectives lists the InferenceObjectives by name.
func (c *Catalogs) Objectives() []Entry[InferenceObjective] { return c.objectives.entries }

// Objective returns the InferenceObjective that a request names.
func (c *Catalogs) Objective(name string) (o InferenceObjective, found bool) {
	e, found := c.objectives.find(Key{Name: name})
	return e.Item, found
}

// Pools lists the pools that documents describe, by name.
func (c *Catalogs) Pools() []Entry[PoolManifest] { return c.pools.entries }
