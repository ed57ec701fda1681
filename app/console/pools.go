package console

import (
	"fmt"
	"net/http"

	"github.com/tidefill/tidefill/dispatch/decision"
	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/store"
)

// poolList is the answer of GET /admin/pools.
type poolList struct {
	Object   string        `json:"object"`
	Time     decision.Time `json:"time"`
	Version  string        `json:"version"`
	Node     string        `json:"node"`
	StandsBy bool          `json:"stands_by"`
	Waiting  []string      `json:"waiting"` // why the daemon is not ready
	// Data are pools: those that this process leads, and those that others have published.
	Data     []any `json:"data"`
	Degraded []any `json:"degraded"`
	// Problems is what else does not work and leaves the daemon ready.
	Problems []string `json:"problems"`
	// Reasons words the reasons in Data, and those that a page may meet in decisions.
	Reasons map[string]explanation `json:"reasons"`
}

type pool struct {
	Name string `json:"name"`
	// Node leads the pool, and Age is how old its report is, in seconds.
	Node string  `json:"node"`
	Age  float64 `json:"age_s"`
	// NotLed is why nobody leads the pool now, though Node did; null: it does.
	NotLed     *string   `json:"not_led"`
	Models     []string  `json:"models"`
	Policy     string    `json:"policy"`
	Protected  bool      `json:"protected"`
	Protection string    `json:"protection"` // a sentence
	Warnings   []warning `json:"warnings"`
	// Failures are those of the runners that have failed lines in the last minutes.
	Failures []failures `json:"failures"`
	// Requests are the interactive requests that pass through; null: none do.
	Requests *requests `json:"requests"`
	// Fallback is what the pool has done instead of another one; null: it is no fallback.
	Fallback *fallback         `json:"fallback"`
	Decision decision.Decision `json:"decision"`
}

type failures struct {
	Runner   string          `json:"runner"`
	Answered int             `json:"answered"`
	Failed   int             `json:"failed"`
	Causes   []store.Failure `json:"causes"`
	Failing  bool            `json:"failing"`
	Since    *int64          `json:"since"` // that it is failing
	Trial    *int64          `json:"next_trial"`
	Text     string          `json:"text"`
}

type warning struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

type degraded struct {
	Target  string        `json:"target"`
	Source  string        `json:"source"`
	State   string        `json:"state"`
	Since   decision.Time `json:"since"`
	Meaning string        `json:"meaning"`
}

type explanation struct {
	Meaning string `json:"meaning"`
	Remedy  string `json:"remedy"`
}

func (c *Console) pools(w http.ResponseWriter, r *http.Request) error {
	list := poolList{
		Object: "list", Time: decision.Time{Time: c.deps.Now()}, Version: c.deps.Version,
		Node: c.deps.Node, StandsBy: c.deps.StandsBy(), Waiting: c.deps.Waiting(),
		Data: []any{}, Degraded: []any{}, Reasons: explanations(),
		Problems: append([]string{}, c.deps.Problems()...),
	}
	pools, sources := c.ownPools()
	for _, p := range pools {
		list.Data = append(list.Data, p)
	}
	for _, d := range sources {
		list.Degraded = append(list.Degraded, d)
	}
	c.fromPeers(r.Context(), &list)
	return writeJSON(w, http.StatusOK, list)
}

// ownPools returns the pools that this process leads, and the sources that give no readings.
func (c *Console) ownPools() (pools []pool, sources []degraded) {
	pools, sources = []pool{}, []degraded{}
	of := map[string]plan.PoolStatus{}
	for _, p := range c.deps.Requests() {
		of[p.ID] = p
	}
	for _, p := range c.deps.Decisions.Pools() {
		shown := pool{Name: p.Name, Node: c.deps.Node, Models: p.Models, Policy: p.Policy,
			Warnings: []warning{}, Failures: []failures{}, Decision: p.Last,
			Requests: requestsOf(of[p.Name].Requests), Fallback: fallbackOf(of[p.Name].Fallback)}
		shown.Protected, shown.Protection = protection(c.deps.Flow(p.Group, p.Models),
			p.Last.Unseen)
		if f := shown.Fallback; f != nil {
			shown.Protected, shown.Protection = true, f.sentence()
		}
		for _, w := range p.Warnings {
			shown.Warnings = append(shown.Warnings, warning(w))
		}
		for _, f := range c.deps.Failures() {
			if f.Pool != p.Name {
				continue
			}
			shown.Failures = append(shown.Failures, failures{Runner: f.Runner,
				Answered: f.Answered, Failed: f.Failed, Causes: f.Causes, Failing: f.Failing,
				Since: unix(f.Since), Trial: unix(f.Trial), Text: f.Text()})
		}
		pools = append(pools, shown)
	}
	for _, d := range c.deps.Degraded() {
		sources = append(sources, degraded{Target: d.Target, Source: d.Source,
			State: d.State, Since: decision.Time{Time: d.Since}, Meaning: d.Meaning})
	}
	return pools, sources
}

// protection says whether interactive users of a pool are protected, and how. unseen says that
// nothing shows what they feel.
func protection(flow flowcontrol.Config, unseen bool) (protected bool, sentence string) {
	switch {
	case !flow.Shared:
		return false, "Batch work has the pool to itself (flowcontrol.shared is false)."
	case !flowcontrol.NeedsOf(flow.Policy).Protects:
		return false, fmt.Sprintf(
			"Interactive users are not protected: the policy %s keeps to no latency.", flow.Policy)
	case unseen:
		return true, fmt.Sprintf("Nothing shows what interactive users feel, so batch work goes "+
			"by its answers: %s. Have metrics of the engines or of a gateway read to keep the "+
			"promise: %v.", flow.SLO.ByAnswers(), flow.SLO)
	}
	return true, fmt.Sprintf("Interactive users are promised: %v.", flow.SLO)
}

func explanations() map[string]explanation {
	all := map[string]explanation{}
	for _, e := range plan.Explanations() {
		all[string(e.Reason)] = explanation{e.Meaning, e.Remedy}
	}
	return all
}
