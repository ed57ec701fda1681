package registry

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidefill/tidefill/internal/faults"
)

// PoolManifest is a pool that a document describes, such as an object of Kubernetes. It joins those
// of the configuration.
type PoolManifest struct {
	// Name is that of the pool; see Pool.Name. The namespace is where its pods are.
	Name      string `yaml:"name"`
	Namespace string `yaml:"namespace"`
	// APIVersion is that of a manifest. It is empty in every pool in force.
	APIVersion string           `yaml:"apiVersion"`
	Spec       PoolManifestSpec `yaml:"spec"`
}

// PoolManifestSpec says where the runners of a pool are: exactly one of Selector, Endpoints and
// InferencePool.
type PoolManifestSpec struct {
	// Models lists the models that the pool serves.
	Models []string `yaml:"models"`
	// Selector selects pods by their labels; each is a runner.
	Selector LabelSelector `yaml:"selector"`
	// Port is the port of selected pods: a number, or the name of a container's port. Empty: the
	// only one that there is.
	Port string `yaml:"port"`
	// Endpoints lists the URLs of runners.
	Endpoints []string `yaml:"endpoints"`
	// InferencePool names an InferencePool of the namespace, whose pods are the runners.
	InferencePool string `yaml:"inferencePool"`
	// AllowImplicit is Pool.AllowImplicit.
	AllowImplicit bool `yaml:"allowImplicit"`
	// Role is Pool.Role. Default: shared.
	Role Role `yaml:"role"`
	// Replicas bounds the number of replicas.
	Replicas ReplicaBounds `yaml:"replicas"`
}

// LabelSelector selects by labels.
type LabelSelector struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
}

// ReplicaBounds are the bounds of a number of replicas.
type ReplicaBounds struct {
	// Min is Pool.Min. Default: 0; with endpoints, their number.
	Min *int `yaml:"min"`
	// Max is Pool.Max. It is required; with endpoints, it is their number.
	Max int `yaml:"max"`
}

// Limits of the manifest of a pool.
const (
	maxModels    = 256
	maxEndpoints = 1000
	maxLabels    = 32
)

var portName = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)

// Key returns the name, which no other pool has.
func (p PoolManifest) Key() Key { return Key{Name: p.Name} }

// WithDefaults returns the pool with what it leaves out.
func (p PoolManifest) WithDefaults() PoolManifest {
	if p.APIVersion == APIVersion {
		p.APIVersion = ""
	}
	s := &p.Spec
	s.Role = cmp.Or(s.Role, RoleShared)
	smallest := 0
	if n := len(s.Endpoints); n > 0 {
		smallest, s.Replicas.Max = n, cmp.Or(s.Replicas.Max, n)
	}
	if s.Replicas.Min == nil {
		s.Replicas.Min = &smallest
	}
	return p
}

// Pool returns the pool.
func (p PoolManifest) Pool() Pool {
	s := p.Spec
	return Pool{Name: p.Name, Models: s.Models, Role: s.Role, AllowImplicit: s.AllowImplicit,
		Min: *s.Replicas.Min, Max: s.Replicas.Max}
}

// Validate returns every fault of a pool with its defaults.
func (p PoolManifest) Validate() faults.List {
	var f faults.List
	if p.APIVersion != "" {
		f.Add("apiVersion", "is %q, must be %s", p.APIVersion, APIVersion)
	}
	if !poolName.MatchString(p.Name) {
		f.Add("name", "is %q, must be 1 to 63 lower-case letters, digits and dashes", p.Name)
	}
	s := p.Spec
	switch n := len(s.Models); {
	case n == 0:
		f.Add("spec.models", "is required; list the models that the pool serves, since a pool "+
			"without replicas can't be asked")
	case n > maxModels:
		f.Add("spec.models", "has %d models, at most %d are taken", n, maxModels)
	}
	seen := map[string]bool{}
	for i, model := range s.Models[:min(len(s.Models), maxModels)] {
		path := fmt.Sprintf("spec.models[%d]", i)
		validText(&f, path, model, maxModelName)
		if seen[model] {
			f.Add(path, "is %q again; list a model once", model)
		}
		seen[model] = true
	}
	s.validatePlaces(&f)
	oneOf(&f, "spec.role", string(s.Role), []string{string(RoleShared), string(RoleBatch)})
	if s.Replicas.Max < 1 || s.Replicas.Max > maxCount {
		f.Add("spec.replicas.max", "is %d, must be from 1 to %d: the number of replicas that "+
			"the pool may have", s.Replicas.Max, maxCount)
	}
	within(&f, "spec.replicas.min", *s.Replicas.Min, 0, max(0, s.Replicas.Max))
	return f
}

// validatePlaces reports what is wrong with where the runners are.
func (s PoolManifestSpec) validatePlaces(f *faults.List) {
	ways := 0
	for _, is := range []bool{len(s.Selector.MatchLabels) > 0, len(s.Endpoints) > 0,
		s.InferencePool != ""} {
		if is {
			ways++
		}
	}
	if ways != 1 {
		f.Add("spec", "has %d of selector.matchLabels, endpoints and inferencePool; set exactly "+
			"one", ways)
	}
	if n := len(s.Selector.MatchLabels); n > maxLabels {
		f.Add("spec.selector.matchLabels", "has %d labels, at most %d are taken", n, maxLabels)
	}
	if number, err := strconv.Atoi(s.Port); s.Port != "" && (err == nil && (number < 1 ||
		number > 65535) || err != nil && !portName.MatchString(s.Port)) {
		f.Add("spec.port", "is %q, must be a number from 1 to 65535, or the name of a port", s.Port)
	}
	if s.Port != "" && len(s.Selector.MatchLabels) == 0 {
		f.Add("spec.port", "is %q, and has an effect with selector alone; remove it", s.Port)
	}
	if n := len(s.Endpoints); n > maxEndpoints {
		f.Add("spec.endpoints", "has %d URLs, at most %d are taken", n, maxEndpoints)
		return
	}
	seen := map[string]bool{}
	for i, endpoint := range s.Endpoints {
		path := fmt.Sprintf("spec.endpoints[%d]", i)
		u, err := url.Parse(endpoint)
		switch {
		case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "", u.User != nil:
			f.Add(path, "is %q, must be a URL with http or https and a host, such as "+
				"http://gpu-1:8000, without a user", endpoint)
		case seen[endpoint]:
			f.Add(path, "is %q again; list a URL once", endpoint)
		}
		seen[endpoint] = true
	}
}

// String returns the selector as app=vllm,tier=prod.
func (s LabelSelector) String() string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		all = append(all, key+"="+s.MatchLabels[key])
	}
	return strings.Join(all, ",")
}

// warnings implements Item.
func (p PoolManifest) warnings() []string { return nil }
