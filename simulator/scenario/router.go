package scenario

// Router is how the router chooses a replica for an interactive request.
type Router string

// The routers.
const (
	// LeastWork chooses the replica with the fewest tokens to compute, and a little for those held.
	LeastWork Router = "least-work"
	// LeastRequests chooses the replica with the fewest requests, batch lines included.
	LeastRequests Router = "least-requests"
	// RoundRobin chooses one after another.
	RoundRobin Router = "round-robin"
	// PrefixAffinity chooses the same replica for prompts with the same beginning, unless it has
	// clearly more work than another.
	PrefixAffinity Router = "prefix-affinity"
	// ExpectedLoad chooses by package dispatch/plan/routing: the replica with the least expected
	// work, less the part of the prompt's that its cache saves.
	ExpectedLoad Router = "expected-load"
	// Inline offers requests to Tidefill's planner, which lets them wait, sends them to a replica
	// or refuses them.
	Inline Router = "inline"
)

// Inline reports whether interactive requests pass through Tidefill.
func (s Scenario) Inline() bool { return s.Pool.Router == Inline }

var routers = []Router{LeastWork, LeastRequests, RoundRobin, PrefixAffinity, ExpectedLoad, Inline}
