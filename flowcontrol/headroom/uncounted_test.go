package headroom

import (
	"testing"
	"time"
)

// An engine that counts the tokens of an answer when it ends takes as long for an iteration as one
// that counts each.
func TestTokensCountedAtTheEndOfAnswers(t *testing.T) {
	const took, running, tokens = 20.0, 4, 100 // milliseconds; requests; of an answer
	for name, counted := range map[string]func(second int) float64{
		"each":       func(int) float64 { return running * 1000 / took },
		"at the end": func(s int) float64 { return float64(s % 2 * running * tokens) }, // each 2 s
		"two by two": func(s int) float64 { return float64((s + 1) % 2 * running * tokens) },
	} {
		var u uncounted
		total, n := 0.0, 0.0
		for s := 1; s <= 600; s++ {
			of, iteration, iterations := u.read(time.Second, running, counted(s))
			if iteration > 0 && !near(milliseconds(of)/iteration, iterations) {
				t.Fatalf("%s: %v iterations of %v ms in %v", name, iterations, iteration, of)
			}
			total, n = total+iteration*iterations, n+iterations
		}
		if got := total / n; !near(got, took) {
			t.Errorf("counted %s: iterations take %.1f ms, want %v", name, got, took)
		}
	}
}

// What ran before an engine that counts nothing for long is not charged to the next answer.
func TestUncountedTimeIsForgotten(t *testing.T) {
	var u uncounted
	u.read(longestUncounted+time.Second, 1, 0)
	if _, iteration, _ := u.read(time.Second, 1, 50); !near(iteration, 20) {
		t.Errorf("an iteration takes %.1f ms, want 20", iteration)
	}
	if _, iteration, _ := u.read(time.Second, 0, 50); iteration != 0 {
		t.Errorf("an iteration takes %.1f ms though nothing ran, want it unknown", iteration)
	}
}
