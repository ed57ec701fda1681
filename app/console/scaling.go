package console

import (
	"net/http"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/dispatch/decision"
)

// scalingList is the answer of GET /admin/scaling.
type scalingList struct {
	Object string        `json:"object"`
	Time   decision.Time `json:"time"`
	// Decided is when the numbers were decided; null: never.
	Decided *decision.Time `json:"decided"`
	// Age is the time since then, in seconds; null: never. The process that decides may be another
	// one.
	Age *float64 `json:"age_s"`
	// Unknown is why nothing is decided; null: something is.
	Unknown *string      `json:"unknown"`
	Data    []scaledPool `json:"data"`
}

// scaledPool is what was decided for a pool.
type scaledPool struct {
	Name string `json:"name"`
	// Wanted replicas, without those that drain; Reported with them, which KEDA gets.
	Wanted   int    `json:"wanted"`
	Reported int    `json:"reported"`
	Reason   string `json:"reason"`
	Sentence string `json:"sentence"`
	Min      int    `json:"min"`
	Max      int    `json:"max"`
	Starting int    `json:"starting"`
	Ready    int    `json:"ready"`
	Draining int    `json:"draining"`
	// InFlight and Lines count batch lines: on its replicas, and left of jobs that it can serve.
	InFlight int         `json:"in_flight"`
	Lines    int         `json:"lines"`
	Active   bool        `json:"active"` // it must not be scaled to zero
	Terms    scalingTerm `json:"terms"`
}

// scalingTerm explains a number of replicas.
type scalingTerm struct {
	ForTraffic   int             `json:"for_traffic"`
	ForDeadlines int             `json:"for_deadlines"` // and traffic
	Requests     decision.Number `json:"requests_per_second"`
	Usual        bool            `json:"follows_usual_day"`
	Harvest      decision.Number `json:"harvest_ms_per_second"` // of a replica
	HarvestShare decision.Number `json:"harvest_share"`
	ColdStart    decision.Number `json:"cold_start_seconds"`
	// Binding is the deadline that needs the most replicas, LatestStart when a replica must be
	// requested at the latest; null: there is none.
	Binding     *decision.Time `json:"binding_deadline"`
	LatestStart *decision.Time `json:"latest_start"`
}

func (c *Console) scaling(w http.ResponseWriter, _ *http.Request) error {
	list := scalingList{Object: "list", Time: decision.Time{Time: c.deps.Now()},
		Data: []scaledPool{}}
	snapshot, err := c.deps.Scaling()
	if err != nil {
		text := err.Error()
		list.Unknown = &text
		return writeJSON(w, http.StatusOK, list)
	}
	if !snapshot.At.IsZero() {
		list.Decided = &decision.Time{Time: snapshot.At}
		age := seconds(max(0, list.Time.Sub(snapshot.At)))
		list.Age = &age
	}
	for i := range snapshot.Pools {
		list.Data = append(list.Data, showScaled(&snapshot.Pools[i]))
	}
	return writeJSON(w, http.StatusOK, list)
}

func showScaled(p *autoscale.PoolSnapshot) scaledPool {
	t := p.Terms
	shown := scaledPool{
		Name: p.Pool, Wanted: p.Replicas, Reported: p.Reported, Reason: string(p.Reason),
		Sentence: p.Reason.Sentence(), Min: p.Min, Max: p.Max, Starting: p.Starting,
		Ready: p.Ready, Draining: p.Draining, InFlight: p.InFlight, Lines: p.Lines,
		Active: p.Active(),
		Terms: scalingTerm{
			ForTraffic: t.Interactive, ForDeadlines: t.Deadline,
			Requests: decision.Number(t.Rate), Usual: t.Seasonal,
			Harvest: decision.Number(t.Harvest), HarvestShare: decision.Number(t.Share),
			ColdStart: decision.Number(t.ColdStart.Seconds()),
		},
	}
	if !t.Binding.IsZero() {
		shown.Terms.Binding = &decision.Time{Time: t.Binding}
	}
	if !t.LatestStart.IsZero() {
		shown.Terms.LatestStart = &decision.Time{Time: t.LatestStart}
	}
	return shown
}
