package console

import (
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// requests are the interactive requests of a pool that pass through.
type requests struct {
	Places   int            `json:"places"`
	Bound    *int           `json:"bound"`  // of classes after those with an objective
	Reason   string         `json:"reason"` // why those that wait do so
	Classes  []requestClass `json:"classes"`
	UseCases []useCase      `json:"use_cases"`
}

type requestClass struct {
	Name    string `json:"name"`
	Waiting int    `json:"waiting"`
	Running int    `json:"running"`
}

// useCase is a use case in the last five minutes.
type useCase struct {
	Name      string         `json:"name"`
	Class     string         `json:"class"`
	Objective *float64       `json:"objective_ms"`
	Requests  int            `json:"requests"`
	P95       *float64       `json:"p95_ms"`
	Attained  *float64       `json:"attained"`
	Refused   map[string]int `json:"refused"`
}

func requestsOf(s *plan.RequestsStatus) *requests {
	if s == nil {
		return nil
	}
	shown := &requests{Places: s.Places, Reason: string(s.Reason), Classes: []requestClass{},
		UseCases: []useCase{}}
	if s.Bound > 0 {
		shown.Bound = &s.Bound
	}
	for _, c := range s.Classes {
		shown.Classes = append(shown.Classes, requestClass(c))
	}
	for _, u := range s.UseCases {
		one := useCase{Name: u.Name, Class: u.Class, Requests: u.Requests,
			Refused: map[string]int{}}
		for why, n := range u.Refused {
			one.Refused[string(why)] = n
		}
		if u.Objective > 0 {
			one.Objective = milliseconds(u.Objective)
		}
		if u.P95 >= 0 {
			one.P95 = milliseconds(u.P95)
		}
		if u.Attained >= 0 {
			one.Attained = &u.Attained
		}
		shown.UseCases = append(shown.UseCases, one)
	}
	return shown
}

func milliseconds(d time.Duration) *float64 {
	ms := float64(d) / float64(time.Millisecond)
	return &ms
}
