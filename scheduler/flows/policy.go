package flows

import "github.com/tidefill/tidefill/internal/byname"

// Policy chooses the class whose request starts next.
//
// Next returns its index, or -1 if none may start. places is the number of requests that the pool
// may have in flight. The classes are in configured order. The result must depend on the arguments
// alone and be a class with a request that waits, and Next must not retain its arguments.
type Policy interface {
	Name() string
	Next(places int, classes []Standing) int
}

// Standing is the state of a class.
type Standing struct {
	Name string
	// Reserve is as configured; 0 while the class has had no request for a while.
	Reserve float64
	// Waiting and Running count its requests.
	Waiting, Running int
	// Limit is the number of requests of the pool below which one of this class may start; at most
	// places.
	Limit int
}

var policies = byname.New[func() Policy]("policy between classes")

func init() {
	Register("strict", func() Policy { return strict{} })
	Register("weighted", func() Policy { return weighted{} })
}

// Register adds a policy that configurations can name. Call it from an init function.
func Register(name string, build func() Policy) { policies.Register(name, build) }

// Policies returns the registered names, sorted.
func Policies() []string { return policies.Names() }

// NewPolicy builds the policy of a name. The error for an unknown name lists the known ones and
// suggests the nearest.
func NewPolicy(name string) (Policy, error) {
	build, err := policies.Get(name)
	if err != nil {
		return nil, err
	}
	return build(), nil
}

// strict serves the first class that has a request and a place. What is reserved for a class before
// it is always kept, what is reserved for one after it only while that has a request to start:
// requests in flight can't be taken back, and those of the class before must not wait for them.
type strict struct{}

func (strict) Name() string { return "strict" }

func (strict) Next(places int, classes []Standing) int {
	for i := range classes {
		if classes[i].Waiting > 0 && fits(places, classes, i) {
			return i
		}
	}
	return -1
}

// fits reports whether a request of a class may start beside what is reserved for the others. What
// is reserved are places that stay free, so it does not count against the limit of the class, which
// is for what runs.
func fits(places int, classes []Standing, i int) bool {
	running, kept := 0, 0
	for k := range classes {
		running += classes[k].Running
	}
	for k := range classes {
		c := &classes[k]
		if k < i || k > i && c.Waiting > 0 && running < c.Limit {
			kept += max(0, int(c.Reserve*float64(places))-c.Running)
		}
	}
	return running+kept < places && running < classes[i].Limit
}

// weighted serves the class with the fewest requests in flight in proportion to its reserve. A
// class without a reserve gets what the others leave.
type weighted struct{}

func (weighted) Name() string { return "weighted" }

func (weighted) Next(places int, classes []Standing) int {
	running := 0
	for i := range classes {
		running += classes[i].Running
	}
	best := -1
	for i := range classes {
		c := &classes[i]
		if c.Waiting == 0 || running >= min(places, c.Limit) {
			continue
		}
		if best < 0 || float64(c.Running)*classes[best].Reserve <
			float64(classes[best].Running)*c.Reserve {
			best = i
		}
	}
	return best
}
