package plan

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/scheduler"
)

// firstTokens returns a gateway's reading of so many requests, some later than a second.
func firstTokens(sampled time.Time, requests, late float64) *flowcontrol.Reading {
	r := flowcontrol.NoReading(flowcontrol.Gateway, sampled)
	r.Requests = requests
	r.FirstTokenTimes = []flowcontrol.Bucket{{Upper: 1, Count: requests - late},
		{Upper: math.Inf(1), Count: requests}}
	return &r
}

// counted is what the policy of a pool has read: when it was true, all requests, the late ones.
type counted struct {
	At             float64 // seconds from noon
	Requests, Late float64
}

func countedIn(r *flowcontrol.Reading) counted {
	late := flowcontrol.Attained(r.FirstTokenTimes, 1)
	return counted{r.Sampled.Sub(noon).Seconds(), r.Requests, late.Late}
}

// The users of all models of a pool are judged together.
func TestGatewayRequestsOfAllModelsOfAPoolAreAdded(t *testing.T) {
	flow := flowcontrol.DefaultConfig()
	flow.SLO.TTFT = time.Second
	p := newPlanner(t, DefaultConfig(), Deps{Scheduler: scheduler.DefaultConfig(), Flow: flow})
	p.Step(noon, RunnerUp{Runner: "r", Models: []string{"base", "lora"}})
	spy := &spyController{Controller: p.pools[0].flow}
	p.pools[0].flow = spy
	for i := range 4 {
		at, n := noon.Add(time.Duration(i+1)*5*time.Second), float64(i)
		p.Step(at, Reading{Model: "base", Reading: firstTokens(at, 100+10*n, 2*n)})
		p.Step(at, Reading{Model: "lora", Reading: firstTokens(at, 5000+n, n)})
	}
	// The first readings are 100 requests of base, and 5000 of lora that were before.
	if diff := cmp.Diff(counted{20, 133, 9}, countedIn(spy.last)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if got := spy.last.TTFT; got.Requests != 133 || got.Late != 9 {
		t.Errorf("judged by the objective: %+v, want 133 requests, 9 late", got)
	}
	if spy.reads != 5 {
		t.Errorf("%d readings, want 1 of base alone and 4 of both", spy.reads)
	}
}

func TestGatewayCounts(t *testing.T) {
	type read struct {
		model          string
		at             float64
		requests, late float64
		want           counted // zero: others are to be read first
	}
	for _, test := range []struct {
		name  string
		reads []read
	}{
		{"one model", []read{
			{"a", 0, 7, 1, counted{0, 7, 1}}, {"a", 0, 7, 1, counted{0, 7, 1}},
			{"a", 5, 3, 0, counted{5, 3, 0}},
		}},
		{"another model comes", []read{
			{"a", 0, 7, 1, counted{0, 7, 1}}, {"a", 5, 8, 1, counted{5, 8, 1}},
			{"b", 5, 900, 9, counted{5, 8, 1}},
			{"a", 10, 9, 1, counted{}}, {"b", 10, 902, 10, counted{10, 11, 2}},
		}},
		{"a model goes, and comes back", []read{
			{"a", 0, 7, 0, counted{0, 7, 0}}, {"b", 0, 10, 0, counted{0, 7, 0}},
			{"a", 5, 8, 0, counted{}},
			{"a", 10, 9, 0, counted{5, 8, 0}},
			{"a", 15, 10, 0, counted{10, 9, 0}},
			{"a", 20, 11, 0, counted{20, 11, 0}}, // b is forgotten
			{"b", 25, 500, 0, counted{}}, {"a", 25, 12, 0, counted{25, 12, 0}},
			{"b", 30, 501, 0, counted{}}, {"a", 30, 12, 0, counted{30, 13, 0}},
		}},
		{"counters begin again", []read{
			{"a", 0, 7, 2, counted{0, 7, 2}}, {"b", 0, 10, 0, counted{0, 7, 2}},
			{"a", 5, 1, 0, counted{}}, {"b", 5, 11, 0, counted{5, 8, 2}},
			{"a", 10, 3, 1, counted{}}, {"b", 10, 11, 0, counted{10, 10, 3}},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var g gatewayCounts
			for i, r := range test.reads {
				at := noon.Add(time.Duration(r.at) * time.Second)
				got := g.add(gatewayModel{"", r.model}, firstTokens(at, r.requests, r.late))
				var counts counted
				if got != nil {
					counts = countedIn(got)
				}
				if diff := cmp.Diff(r.want, counts); diff != "" {
					t.Errorf("reading %d (-want +got)\n%s", i, diff)
				}
			}
		})
	}
}

// A counter that one model shows and another doesn't is of the one alone, and is absent where
// neither shows it now.
func TestGatewayCountersOfSomeModels(t *testing.T) {
	var g gatewayCounts
	answers := func(n float64) *flowcontrol.Reading {
		r := flowcontrol.NoReading(flowcontrol.Gateway, noon)
		r.AnswerLengths = []flowcontrol.Bucket{{Upper: math.Inf(1), Count: n}}
		return &r
	}
	absent := flowcontrol.NoReading(flowcontrol.Gateway, noon)
	g.add(gatewayModel{"", "a"}, firstTokens(noon, 5, 0))
	g.add(gatewayModel{}, answers(70))
	g.add(gatewayModel{"", "a"}, firstTokens(noon, 6, 0))
	want := *firstTokens(noon, 6, 0)
	want.AnswerLengths = answers(72).AnswerLengths
	got := g.add(gatewayModel{}, answers(72))
	if diff := cmp.Diff(&want, got, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	g.add(gatewayModel{"", "a"}, &absent)
	got = g.add(gatewayModel{}, answers(72))
	if len(got.FirstTokenTimes) != 0 || !math.IsNaN(got.Requests) {
		t.Errorf("what nobody shows is %+v", got)
	}
	g.add(gatewayModel{"", "a"}, firstTokens(noon, 9, 0))
	if got = g.add(gatewayModel{}, answers(72)); got.Requests != 9 {
		t.Errorf("%v requests after a gap, want 9", got.Requests)
	}
}

// Requests whose histogram has other edges count where they are known not to be later.
func TestGatewayHistogramsOfOtherEdges(t *testing.T) {
	var g gatewayCounts
	fine := func(n float64) *flowcontrol.Reading {
		r := flowcontrol.NoReading(flowcontrol.Gateway, noon)
		r.FirstTokenTimes = []flowcontrol.Bucket{{Upper: 0.8, Count: n}, {Upper: 1.2, Count: 3 * n},
			{Upper: math.Inf(1), Count: 4 * n}}
		return &r
	}
	g.add(gatewayModel{"", "a"}, firstTokens(noon, 10, 0))
	g.add(gatewayModel{"", "b"}, fine(0))
	g.add(gatewayModel{"", "a"}, firstTokens(noon, 10, 0))
	got := g.add(gatewayModel{"", "b"}, fine(5))
	want := []flowcontrol.Bucket{{Upper: 1, Count: 15}, {Upper: math.Inf(1), Count: 30}}
	if diff := cmp.Diff(want, got.FirstTokenTimes); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// Two replicas of Prometheus behind one address have read the gateway at different times.
func TestGatewayCountsGrowOnceWithTwoReplicas(t *testing.T) {
	var g gatewayCounts
	var last *flowcontrol.Reading
	newest := 0.0
	for read := 100.0; read <= 700; read += 5 {
		scraped := math.Floor(read/15) * 15
		if int(read/5)%2 == 1 {
			scraped = math.Floor((read-7)/15)*15 + 7
		}
		newest = max(newest, scraped)
		at := noon.Add(time.Duration(scraped) * time.Second)
		for _, model := range []string{"a", "b"} {
			all := g.add(gatewayModel{"", model}, firstTokens(at, 10*scraped, scraped))
			if all != nil {
				last = all
			}
		}
	}
	// Of the second model, what came before its first reading does not count.
	if most := 20*newest - 10*90; last.Requests > most {
		t.Errorf("%.0f requests, of %.0f", last.Requests, most)
	}
}
