package kube

import (
	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/tidefill/tidefill/internal/faults"
	"github.com/tidefill/tidefill/registry"
)

// Config names the ConfigMaps that hold templates and profiles. Start from DefaultConfig.
type Config struct {
	// Namespace is where the ConfigMaps are. The section kubernetes says how the cluster is
	// reached. Empty: none is read. Default: empty.
	Namespace string `yaml:"namespace"`
	// Templates names the ConfigMap with the entry templates.yaml. Default:
	// aibrix-model-deployment-templates.
	Templates string `yaml:"templates"`
	// Profiles names the ConfigMap with the entry profiles.yaml. It may be the same. Default:
	// aibrix-batch-profiles.
	Profiles string `yaml:"profiles"`
	// UseCases follows the UseCaseSets of tidefill.dev, and the InferenceObjectives of llm-d.ai or
	// else of the Gateway API Inference Extension, and writes the status of the former. They are in
	// namespace or, without one, where the daemon is. Default: false.
	UseCases bool `yaml:"use_cases"`
	// Pools follows the Pools of tidefill.dev in the same namespace, which join those of the
	// configuration, and writes their status. Default: false.
	Pools bool `yaml:"pools"`
}

// DefaultConfig reads no ConfigMap, and has the names that AIBrix uses.
func DefaultConfig() Config {
	return Config{Templates: "aibrix-model-deployment-templates", Profiles: "aibrix-batch-profiles"}
}

// Enabled reports whether ConfigMaps are read.
func (c Config) Enabled() bool { return c.Namespace != "" }

// Names lists the ConfigMaps that are read, each once.
func (c Config) Names() []string {
	switch {
	case !c.Enabled():
		return nil
	case c.Templates == c.Profiles:
		return []string{c.Templates}
	}
	return []string{c.Templates, c.Profiles}
}

// kind returns the kind of which a ConfigMap must have an entry.
func (c Config) kind(name string) registry.Kind {
	if name == c.Templates {
		return registry.Templates
	}
	return registry.Profiles
}

// Validate reports every fault with the path of its field.
func (c Config) Validate() error {
	var f faults.List
	if c.Namespace != "" && len(validation.ValidateNamespaceName(c.Namespace, false)) > 0 {
		f.Add("namespace", "is %q, must be the name of a namespace: at most 63 lower-case "+
			"letters, digits and dashes", c.Namespace)
	}
	for _, m := range []struct{ path, name string }{{"templates", c.Templates},
		{"profiles", c.Profiles}} {
		if len(validation.NameIsDNSSubdomain(m.name, false)) > 0 {
			f.Add(m.path, "is %q, must be the name of a ConfigMap: lower-case letters, digits, "+
				"dashes and dots", m.name)
		}
	}
	return f.Err()
}
