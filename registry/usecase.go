package registry

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/internal/faults"
)

// UseCaseSet binds model names that users send to pools. One team owns a set.
type UseCaseSet struct {
	// Name is that of the set: 1 to 128 characters without a slash.
	Name string `yaml:"name"`
	// Namespace is that of a Kubernetes object. Sets of two namespaces may have one name. Empty: a
	// document outside Kubernetes.
	Namespace string `yaml:"namespace"`
	// APIVersion is that of a manifest. It is empty in every set in force.
	APIVersion string         `yaml:"apiVersion"`
	Spec       UseCaseSetSpec `yaml:"spec"`
}

// UseCaseSetSpec has the use cases of a set, and their pools.
type UseCaseSetSpec struct {
	UseCases []UseCaseSpec `yaml:"useCases"`
	// PoolRef lists the pools that serve the use cases. Empty: every pool, and the upstreams that
	// name none.
	PoolRef []PoolRef `yaml:"poolRef"`
}

// PoolRef names a pool.
type PoolRef struct {
	Name string `yaml:"name"`
}

// UseCaseSpec is a use case as documents have it.
type UseCaseSpec struct {
	// ModelName is the name that users send: 1 to 256 characters, unique among the use cases of a
	// pool.
	ModelName string `yaml:"modelName"`
	// Objective is the latency that is wanted. Nil: none.
	Objective *Objective `yaml:"objective"`
	// TargetModels are the models that answer, as engines name them. Empty: the model name itself.
	TargetModels []TargetModel `yaml:"targetModels"`
	// Class is the class of priority: critical, standard, flex or another one that is configured.
	// Default: critical with an objective, else standard.
	Class string `yaml:"class"`
	// Weight is the share among the use cases of a class, above 0. Default: 1.
	Weight *float64 `yaml:"weight"`
	// Tenants lists those that may send the name. Others get the answer for a name that does not
	// exist. Empty: all.
	Tenants []string `yaml:"tenants"`
	// Sticky says which requests have the same target: those with the same prefix of the prompt, or
	// with the same value of a header, which is named. Default: none, which draws per request.
	Sticky string `yaml:"sticky"`
}

// Objective is a latency that is wanted.
type Objective struct {
	// PerOutputToken is the end-to-end time of a request by its output tokens, of which 95 % are to
	// be lower: a duration such as 40ms.
	PerOutputToken string `yaml:"desiredAveragePerOutputTokenLatencyAtP95OverMultipleRequests"`
}

// TargetModel is a model or a LoRA adapter, and its share.
type TargetModel struct {
	TargetModelName string `yaml:"targetModelName"`
	// Weight is the share of the requests, 0 to 1,000,000, by the sum of the weights. Default: 1.
	Weight *int `yaml:"weight"`
}

// The ways in which requests stick to a target. Any other value is the name of a header.
const (
	StickyNone   = "none"
	StickyPrefix = "prefix"
)

// The classes that use cases have by default.
const (
	ClassCritical = "critical"
	ClassStandard = "standard"
	ClassFlex     = "flex"
)

// Limits of a set.
const (
	maxModelName     = 256
	maxUseCases      = 256
	maxTargets       = 32
	maxPoolRefs      = 32
	maxTenants       = 1000
	maxTargetWeight  = 1_000_000
	maxUseCaseWeight = 1_000_000
	maxObjective     = time.Hour
)

var (
	className  = regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$")
)

// Key returns the name, after the namespace if there is one.
func (s UseCaseSet) Key() Key {
	if s.Namespace != "" {
		return Key{Name: s.Namespace + "/" + s.Name}
	}
	return Key{Name: s.Name}
}

// WithDefaults returns the set with what it leaves out. Without targets a use case has itself.
func (s UseCaseSet) WithDefaults() UseCaseSet {
	if s.APIVersion == APIVersion {
		s.APIVersion = ""
	}
	s.Spec.UseCases = slices.Clone(s.Spec.UseCases)
	for i := range s.Spec.UseCases {
		u := &s.Spec.UseCases[i]
		class := ClassStandard
		if u.Objective != nil {
			class = ClassCritical
		}
		u.Class, u.Sticky = cmp.Or(u.Class, class), cmp.Or(u.Sticky, StickyNone)
		if u.Weight == nil {
			u.Weight = new(1.0)
		}
		if len(u.TargetModels) == 0 {
			u.TargetModels = []TargetModel{{TargetModelName: u.ModelName}}
		}
		u.TargetModels = slices.Clone(u.TargetModels)
		for j := range u.TargetModels {
			if t := &u.TargetModels[j]; t.Weight == nil {
				t.Weight = new(1)
			}
		}
	}
	return s
}

// Validate returns every fault of a set with its defaults.
func (s UseCaseSet) Validate() faults.List {
	var f faults.List
	if s.APIVersion != "" {
		f.Add("apiVersion", "is %q, must be %s", s.APIVersion, APIVersion)
	}
	validName(&f, "name", s.Name)
	if strings.Contains(s.Name, "/") {
		f.Add("name", "is %q, must have no slash; the namespace has a key of its own", s.Name)
	}
	if s.Namespace != "" {
		validName(&f, "namespace", s.Namespace)
	}
	switch n := len(s.Spec.UseCases); {
	case n == 0:
		f.Add("spec.useCases", "is required; list at least one use case")
	case n > maxUseCases:
		f.Add("spec.useCases", "has %d use cases, at most %d are taken; split the set", n,
			maxUseCases)
		return f
	}
	first := map[string]int{}
	for i, u := range s.Spec.UseCases {
		path := fmt.Sprintf("spec.useCases[%d]", i)
		u.validate(&f, path)
		if at, twice := first[u.ModelName]; twice {
			f.Add(path+".modelName", "is %q, as that of useCases[%d]; remove one", u.ModelName, at)
			continue
		}
		first[u.ModelName] = i
	}
	if n := len(s.Spec.PoolRef); n > maxPoolRefs {
		f.Add("spec.poolRef", "has %d pools, at most %d are taken", n, maxPoolRefs)
		return f
	}
	seen := map[string]bool{}
	for i, p := range s.Spec.PoolRef {
		path := fmt.Sprintf("spec.poolRef[%d].name", i)
		validName(&f, path, p.Name)
		if seen[p.Name] {
			f.Add(path, "is %q again; name a pool once", p.Name)
		}
		seen[p.Name] = true
	}
	return f
}

func (u UseCaseSpec) validate(f *faults.List, path string) {
	validText(f, path+".modelName", u.ModelName, maxModelName)
	if u.Objective != nil {
		at := path + ".objective.desiredAveragePerOutputTokenLatencyAtP95OverMultipleRequests"
		switch d, err := time.ParseDuration(u.Objective.PerOutputToken); {
		case u.Objective.PerOutputToken == "":
			f.Add(at, "is required, such as 40ms; without an objective, remove objective")
		case err != nil:
			f.Add(at, "is %q, must be a duration, such as 40ms", u.Objective.PerOutputToken)
		case d <= 0 || d > maxObjective:
			f.Add(at, "is %v, must be above 0, and at most %v", d, maxObjective)
		}
	}
	u.validateTargets(f, path+".targetModels")
	if !className.MatchString(u.Class) {
		f.Add(path+".class", "is %q, must be a word of 1 to 63 lower-case letters, digits and "+
			"dashes, such as %s", u.Class, ClassStandard)
	}
	if w := *u.Weight; !(w > 0 && w <= maxUseCaseWeight) || math.IsNaN(w) {
		f.Add(path+".weight", "is %v, must be above 0, and at most %d", w, maxUseCaseWeight)
	}
	if n := len(u.Tenants); n > maxTenants {
		f.Add(path+".tenants", "has %d tenants, at most %d are taken", n, maxTenants)
		return
	}
	for i, tenant := range u.Tenants {
		required(f, fmt.Sprintf("%s.tenants[%d]", path, i), tenant)
	}
	if !headerName.MatchString(u.Sticky) {
		f.Add(path+".sticky", "is %q, must be none, prefix or the name of a header", u.Sticky)
	}
}

func (u UseCaseSpec) validateTargets(f *faults.List, path string) {
	if n := len(u.TargetModels); n > maxTargets {
		f.Add(path, "has %d targets, at most %d are taken", n, maxTargets)
		return
	}
	sum := 0
	seen := map[string]bool{}
	for i, t := range u.TargetModels {
		at := fmt.Sprintf("%s[%d]", path, i)
		if t.TargetModelName != u.ModelName { // whose faults are reported already
			validText(f, at+".targetModelName", t.TargetModelName, maxModelName)
		}
		if seen[t.TargetModelName] {
			f.Add(at+".targetModelName", "is %q again; name a target once, with the sum of the "+
				"weights", t.TargetModelName)
		}
		seen[t.TargetModelName] = true
		within(f, at+".weight", *t.Weight, 0, maxTargetWeight)
		sum += max(0, *t.Weight)
	}
	if sum == 0 {
		f.Add(path, "has weights that add up to 0, so that no target gets requests; give one "+
			"target a weight above 0")
	}
}

// warnings implements Item.
func (s UseCaseSet) warnings() (all []string) {
	for i, u := range s.Spec.UseCases {
		if u.Sticky != StickyNone && len(u.TargetModels) == 1 {
			all = append(all, fmt.Sprintf("spec.useCases[%d].sticky has no effect with one target",
				i))
		}
	}
	return all
}

// PoolNames lists the pools of the set. Empty: every pool.
func (s UseCaseSet) PoolNames() (names []string) {
	for _, p := range s.Spec.PoolRef {
		names = append(names, p.Name)
	}
	return names
}

// UseCases returns the use cases of a valid set with its defaults.
func (s UseCaseSet) UseCases() []UseCase {
	all := make([]UseCase, len(s.Spec.UseCases))
	pools := s.PoolNames()
	for i, u := range s.Spec.UseCases {
		all[i] = UseCase{Model: u.ModelName, Set: s.Key().String(), Class: u.Class,
			Weight: *u.Weight, Pools: pools, Tenants: u.Tenants, Sticky: u.Sticky}
		if u.Objective != nil {
			all[i].Objective, _ = time.ParseDuration(u.Objective.PerOutputToken)
		}
		for _, t := range u.TargetModels {
			all[i].Targets = append(all[i].Targets, Target{t.TargetModelName, *t.Weight})
		}
	}
	return all
}
