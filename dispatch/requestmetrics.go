package dispatch

import "github.com/tidefill/tidefill/dispatch/plan"

var (
	poolPlaces = gauge("tidefill_pool_request_places", "Interactive requests that pass through "+
		"and may be in flight on all runners of the pool.", "pool")
	poolRequests = gauge("tidefill_pool_requests", "Interactive requests that pass through, by "+
		"class; waiting: for a place.", "pool", "class", "state")
	objective = gauge("tidefill_use_case_objective_seconds", "Average time per output token that "+
		"the use case promises for 95 of 100 requests. Absent without an objective.", "pool",
		"use_case", "class")
	objectiveP95 = gauge("tidefill_use_case_token_seconds", "95th percentile of the average time "+
		"per output token of the requests of the last five minutes. Absent while there are fewer "+
		"than 50.", "pool", "use_case", "class")
	objectiveAttained = gauge("tidefill_use_case_attained_ratio", "Share of the requests of the "+
		"last five minutes within the objective. Absent while there are fewer than 50.", "pool",
		"use_case", "class")
)

func showRequests(pool string, s *plan.RequestsStatus, show showGauge) {
	if s == nil {
		return
	}
	show(poolPlaces, float64(s.Places), pool)
	for _, c := range s.Classes {
		show(poolRequests, float64(c.Waiting), pool, c.Name, "waiting")
		show(poolRequests, float64(c.Running), pool, c.Name, "running")
	}
	for i := range s.UseCases {
		u := &s.UseCases[i]
		if u.Objective > 0 {
			show(objective, u.Objective.Seconds(), pool, u.Name, u.Class)
		}
		if u.P95 >= 0 {
			show(objectiveP95, u.P95.Seconds(), pool, u.Name, u.Class)
		}
		if u.Attained >= 0 {
			show(objectiveAttained, u.Attained, pool, u.Name, u.Class)
		}
	}
}
