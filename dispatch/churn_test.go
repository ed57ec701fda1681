package dispatch_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/dispatch/plan"
)

// The runners of a pool are replaced one by one while lines run, as pods are. Each is drained
// before. No line is lost or sent twice, and the runners that stay are left alone.
func TestRunnersOfAPoolAreReplacedWhileLinesRun(t *testing.T) {
	w := newWorld(t)
	var servers []*upstream
	start := func() dispatch.Upstream {
		servers = append(servers, serve(t, slowly(2*time.Millisecond), "m"))
		return dispatch.Upstream{URL: servers[len(servers)-1].URL, Pool: "gpus",
			Name: fmt.Sprint("pod-", len(servers))}
	}
	to := w.settings(start(), start(), start(), start())
	to.Registry = fixedLines(3)
	d, _ := w.dispatcher("a", func(cfg *dispatch.Config, deps *dispatch.Deps) {
		deps.Upstreams, deps.Registry = to.Upstreams, to.Registry
	})
	runners := func() (all map[string]plan.RunnerSurvey) {
		t.Helper()
		until(t, "four runners are up", func() bool {
			all = map[string]plan.RunnerSurvey{}
			for _, r := range survey(t, d).Runners {
				all[r.ID] = r
			}
			for _, u := range to.Upstreams {
				if _, up := all[u.Name]; !up {
					return false
				}
			}
			return len(all) == 4
		})
		return all
	}
	before := runners()
	const lines = 4000
	id := w.submit(chatLines(lines, "m"), nil)
	rounds := 0
	for ; rounds < 12 && !w.batch(id).State.Terminal(); rounds++ {
		oldest := to.Upstreams[0]
		d.SetDraining([]string{oldest.Name})
		if rounds%2 == 0 { // every other one leaves with lines in flight
			until(t, "the drained runner is empty", func() bool {
				for _, r := range survey(t, d).Runners {
					if r.ID == oldest.Name {
						return r.InFlight == 0
					}
				}
				return false
			})
		}
		to.Upstreams = append(to.Upstreams[1:4:4], start())
		apply(t, d, to)
		after := runners()
		for _, u := range to.Upstreams[:3] {
			if after[u.Name].Since != before[u.Name].Since ||
				after[u.Name].Served.Requests < before[u.Name].Served.Requests {
				t.Fatalf("%s stayed and was %+v, and now is %+v", u.Name, before[u.Name],
					after[u.Name])
			}
		}
		before = after
	}
	w.awaitEnd(id)
	output, errs := w.results(id)
	requests := 0
	for _, u := range servers {
		requests += u.requests()
	}
	if len(output) != lines || len(errs) > 0 || requests != lines || rounds < 4 {
		t.Errorf("%d results, %d errors and %d requests for %d lines in %d rounds", len(output),
			len(errs), requests, lines, rounds)
	}
}
