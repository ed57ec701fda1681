package upstream

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

func TestGapsAreReportedPeriodically(t *testing.T) {
	var m gapMeter
	now := time.Unix(0, 0)
	var got []plan.TokenGaps
	come := func(n, tokens int, after time.Duration) {
		for range n {
			now = now.Add(after)
			if sum, due := m.add("r", now, tokens, after); due {
				got = append(got, sum)
			}
		}
	}
	expect := func(what string, want ...plan.TokenGaps) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%s: got %+v, want %+v", what, got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: got %+v, want %+v", what, got[i], want[i])
			}
		}
		got = nil
	}
	come(25, 1, 20*time.Millisecond)
	expect("half a second of tokens", plan.TokenGaps{Runner: "r", Gaps: 14,
		Time: 280 * time.Millisecond})
	now = now.Add(time.Minute)
	come(1, 1, 30*time.Millisecond)
	expect("what was left is old by now")
	come(9, 1, 30*time.Millisecond)
	expect("and again", plan.TokenGaps{Runner: "r", Gaps: 10, Time: 300 * time.Millisecond})
	// Ten tokens at once: only the usage at the end shows that.
	m.learn(1000, 100)
	come(2, 1, 200*time.Millisecond)
	expect("in tens", plan.TokenGaps{Runner: "r", Gaps: 20, Time: 400 * time.Millisecond})
	for range 50 {
		m.learn(105, 100) // an end without text is no second token
	}
	come(13, 1, 20*time.Millisecond)
	expect("one by one", plan.TokenGaps{Runner: "r", Gaps: 13, Time: 260 * time.Millisecond})
}
