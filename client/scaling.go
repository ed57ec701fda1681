package client

import (
	"context"
	"net/http"
)

// ScalingList is what a daemon decided last about the number of replicas of its pools.
type ScalingList struct {
	Time    float64      `json:"time"`    // of the daemon, in Unix seconds
	Decided *float64     `json:"decided"` // when; nil: never
	Unknown *string      `json:"unknown"` // why nothing is decided; nil: something is
	Data    []ScaledPool `json:"data"`
}

// ScaledPool is what was decided for a pool.
type ScaledPool struct {
	Name     string `json:"name"`
	Wanted   int    `json:"wanted"`   // replicas, without those that drain
	Reported int    `json:"reported"` // with those that drain, which KEDA gets
	Reason   string `json:"reason"`
	Sentence string `json:"sentence"`
	Min      int    `json:"min"`
	Max      int    `json:"max"`
	Starting int    `json:"starting"`
	Ready    int    `json:"ready"`
	Draining int    `json:"draining"`
	InFlight int    `json:"in_flight"` // batch lines on its replicas
	Lines    int    `json:"lines"`     // left of the jobs that it can serve
	Active   bool   `json:"active"`    // it must not be scaled to zero
	Terms    struct {
		ForTraffic   int      `json:"for_traffic"`
		ForDeadlines int      `json:"for_deadlines"` // and traffic
		Requests     *float64 `json:"requests_per_second"`
		Usual        bool     `json:"follows_usual_day"`
		Harvest      *float64 `json:"harvest_ms_per_second"` // of a replica
		HarvestShare *float64 `json:"harvest_share"`
		ColdStart    *float64 `json:"cold_start_seconds"`
		Binding      *float64 `json:"binding_deadline"` // that needs the most replicas
		LatestStart  *float64 `json:"latest_start"`     // when a replica must be requested
	} `json:"terms"`
}

// Scaling returns what was decided last about replicas. The Client must be of the admin address.
func (c *Client) Scaling(ctx context.Context) (list ScalingList, err error) {
	err = c.call(ctx, request{method: http.MethodGet, path: "/admin/scaling"}, &list)
	return list, err
}
