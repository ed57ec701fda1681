package random

import (
	"reflect"
	"slices"
	"time"

	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

// Simplification is a scenario that is simpler than another in one respect.
type Simplification struct {
	Name     string
	Scenario scenario.Scenario
}

// shortestSimplified is the least horizon of a simplification: long enough for the worst five
// minutes.
const shortestSimplified = 7 * time.Minute

// Simplify returns the simplifications of a scenario that differ from it: a shorter run, fewer
// runners, one job instead of several, and each other property at its default.
func Simplify(s scenario.Scenario) []Simplification {
	var all []Simplification
	add := func(name string, change func(*scenario.Scenario)) {
		simpler := s
		simpler.Jobs = slices.Clone(s.Jobs)
		change(&simpler)
		if !reflect.DeepEqual(s, simpler) {
			all = append(all, Simplification{name, simpler})
		}
	}
	plain := scenario.Default()
	if s.Horizon >= 2*shortestSimplified {
		add("half the time", func(s *scenario.Scenario) {
			*s = s.Until((s.Horizon / 2).Round(time.Second))
		})
	}
	for _, n := range []int{1, s.Pool.Replicas / 4, s.Pool.Replicas / 2, s.Pool.Replicas - 1} {
		if n >= 1 {
			add("fewer runners", func(s *scenario.Scenario) { withRunners(s, n) })
		}
	}
	if len(s.Jobs) > 1 {
		for _, j := range s.Jobs {
			add("one job", func(s *scenario.Scenario) {
				j.At, j.Lines, j.Tenant = 0, 0, ""
				s.Jobs = []scenario.Job{j}
			})
		}
	}
	add("default cost model", func(s *scenario.Scenario) {
		s.Pool.CostModelError = scenario.CostModelError{}
	})
	add("known engines", func(s *scenario.Scenario) { s.Pool.FactsWithheld = false })
	add("no bursts", func(s *scenario.Scenario) { s.Interactive.Bursts = scenario.Bursts{} })
	add("no surges", func(s *scenario.Scenario) { s.Interactive.Surges = nil })
	add("no prefixes", func(s *scenario.Scenario) { s.Interactive.Prefix = scenario.Prefix{} })
	add("prompts of one length", func(s *scenario.Scenario) { s.Interactive.Input.Sigma = 0 })
	add("answers of one length", func(s *scenario.Scenario) { s.Interactive.Output.Sigma = 0 })
	add("default lengths", func(s *scenario.Scenario) {
		s.Interactive.Input, s.Interactive.Output = scenario.Length{}, scenario.Length{}
	})
	add("current router view", func(s *scenario.Scenario) { s.Pool.RouterView = 0 })
	add("default router", func(s *scenario.Scenario) { s.Pool.Router = plain.Pool.Router })
	add("default queue", func(s *scenario.Scenario) {
		s.Pool.Scheduling = plain.Pool.Scheduling
	})
	add("default prefix cache", func(s *scenario.Scenario) {
		s.Pool.PrefixCaching = plain.Pool.PrefixCaching
	})
	add("no refused lines", func(s *scenario.Scenario) { s.Pool.ShedAbove = 0 })
	add("default sequences", func(s *scenario.Scenario) { s.Pool.MaxSeqs = 0 })
	add("default KV", func(s *scenario.Scenario) { s.Pool.KVTokens = 0 })
	add("default chunk budget", func(s *scenario.Scenario) { s.Pool.MaxBatchedTokens = 0 })
	add("default metrics", func(s *scenario.Scenario) { s.Metrics = plain.Metrics })
	add("default gateway", func(s *scenario.Scenario) { s.Metrics.Gateway = plain.Metrics.Gateway })
	add("engine metrics", func(s *scenario.Scenario) { s.Metrics.Engine = true })
	add("default objectives", func(s *scenario.Scenario) {
		s.Interactive.SLO = plain.Interactive.SLO
	})
	add("balanced lines", func(s *scenario.Scenario) {
		for i, j := range s.Jobs {
			s.Jobs[i] = scenario.Job{Name: j.Name, Tenant: j.Tenant, At: j.At, Window: j.Window,
				Lines: j.Lines, Kind: "bal"}
		}
	})
	if s.Interactive.Trace != "" {
		add("generated traffic", func(s *scenario.Scenario) {
			s.Interactive.Trace, s.Interactive.Format = "", ""
			s.Interactive.Generator = workload.Conversation().Name
		})
	}
	return all
}

// withRunners gives a pool fewer runners and its traffic in proportion.
func withRunners(s *scenario.Scenario, n int) {
	share := float64(n) / float64(s.Pool.Replicas)
	s.Pool.Replicas = n
	s.Interactive.Rate = significant(share*s.Interactive.Rate, 3)
	if users := s.Interactive.Users.Count; users > 0 {
		s.Interactive.Users.Count = max(1, int(share*float64(users)))
	}
}
