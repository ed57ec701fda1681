package headroom

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Where metrics come every half minute, half a minute of silence is no sign that a runner is gone,
// and lines grow; a single long silence changes nothing.
func TestSilenceCountsByTheUsualOne(t *testing.T) {
	cfg := defaultTuning().Staleness
	state := func(every time.Duration, silence time.Duration) knowledge {
		s, now := newStaleness(noon), noon
		for range 10 {
			now = now.Add(every)
			s.observed(now)
		}
		s.pass(now.Add(silence), time.Second, 10, cfg)
		return s.state
	}
	for _, test := range []struct {
		every, silence time.Duration
		want           knowledge
	}{
		{time.Second, 10 * time.Second, fresh},
		{time.Second, 20 * time.Second, aging},
		{30 * time.Second, 50 * time.Second, fresh},
		{25 * time.Second, 55 * time.Second, aging},
		{5 * time.Minute, 50 * time.Second, fresh},
		{5 * time.Minute, 70 * time.Second, stale},
	} {
		if got := state(test.every, test.silence); got != test.want {
			t.Errorf("after %v of silence, with observations each %v: state %d, want %d",
				test.silence, test.every, got, test.want)
		}
	}
	s := newStaleness(noon)
	s.observed(noon.Add(time.Second))
	s.observed(noon.Add(3 * time.Minute))
	if after := s.agingAfter(cfg); after != cfg.AgingAfter {
		t.Errorf("after one long silence, aging begins after %v", after)
	}
}

// Where only a gateway shows users, a line that runs for minutes leaves its runner as well known as
// the users who are served meanwhile.
func TestServedUsersShowRunnersWithoutMetrics(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(*runner)
		served  float64 // users between two readings
		want    knowledge
	}{
		{"users are served", func(*runner) {}, 5, fresh},
		{"nobody is served", func(*runner) {}, 0, stale},
		{"metrics have shown it", func(r *runner) { r.interactive.seenAt = noon }, 5, stale},
		{"a line has broken", func(r *runner) { r.staleness.broken = 1 }, 5, stale},
	} {
		c, runners := newPool(t, nil, "r")
		test.prepare(runners[0])
		for s := range 120 {
			now := noon.Add(time.Duration(s) * time.Second)
			users := test.served * float64(s)
			c.Observe(now, &flowcontrol.Read{
				Reading: &flowcontrol.Reading{Source: flowcontrol.Gateway, Sampled: now,
					TTFT: flowcontrol.Attainment{Requests: users},
					TPOT: flowcontrol.Attainment{Requests: users}}})
			c.Advance(now)
		}
		if got := runners[0].staleness.state; got != test.want {
			t.Errorf("%s: state %d, want %d", test.name, got, test.want)
		}
	}
}
