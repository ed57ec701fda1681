package dispatch

import (
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

func TestGapsAreToldAgainAndAgainWhileTheyCome(t *testing.T) {
	var m gapMeter
	now := time.Unix(0, 0)
	var told []plan.TokenGaps
	come := func(n, tokens int, after time.Duration) {
		for range n {
			now = now.Add(after)
			if news, due := m.add("r", now, tokens, after); due {
				told = append(told, news)
			}
		}
	}
	expect := func(what string, want ...plan.TokenGaps) {
		t.Helper()
		if len(told) != len(want) {
			t.Fatalf("%s: told %+v, want %+v", what, told, want)
		}
		for i := range want {
			if told[i] != want[i] {
				t.Errorf("%s: told %+v, want %+v", what, told[i], want[i])
			}
		}
		told = nil
	}
	come(25, 1, 20*time.Millisecond)
	expect("half a second of tokens", plan.TokenGaps{Runner: "r", Gaps: 14,
		Time: 280 * time.Millisecond})
	now = now.Add(time.Minute)
	come(1, 1, 30*time.Millisecond)
	expect("what was left is old by now")
	come(9, 1, 30*time.Millisecond)
	expect("and again", plan.TokenGaps{Runner: "r", Gaps: 10, Time: 300 * time.Millisecond})
	// Ten tokens at once: only the usage at the end tells.
	m.learn(1000, 100)
	come(2, 1, 200*time.Millisecond)
	expect("in tens", plan.TokenGaps{Runner: "r", Gaps: 20, Time: 400 * time.Millisecond})
	for range 50 {
		m.learn(105, 100) // an end without text is no second token
	}
	come(13, 1, 20*time.Millisecond)
	expect("one by one", plan.TokenGaps{Runner: "r", Gaps: 13, Time: 260 * time.Millisecond})
}
