package clusterscale

import (
	"math"
	"testing"
	"time"
)

// One daemon that sent 7,500 lines per second of a large batch was seen to make 4.4 transactions
// per second, 2.1 of them registrations, and 3.5 requests to the bucket for 1,000 lines.
func TestLoadAgreesWithAMeasuredOne(t *testing.T) {
	l := Load{Pools: 1, Processes: 1, Lines: 7500, BatchLines: 250_000,
		Commit: 500 * time.Millisecond}
	sum := 0.0
	for _, c := range l.Transactions() {
		if c.Name != "batches, besides their chunks" { // it had begun
			sum += c.PerSecond
		}
	}
	puts, gets := l.requests()
	for what, pair := range map[string][2]float64{
		"transactions":  {sum, 4.4},
		"registrations": {l.Transactions()[0].PerSecond, 2.1},
		"requests":      {(puts + gets) / 7.5, 3.5},
	} {
		if ratio := pair[0] / pair[1]; math.Abs(ratio-1) > 0.2 {
			t.Errorf("%s: %.2f, measured %.2f", what, pair[0], pair[1])
		}
	}
}

func TestSimulateRepeats(t *testing.T) {
	a, b := Simulate(DefaultLoad, 10*time.Second, 7), Simulate(DefaultLoad, 10*time.Second, 7)
	if a.Commit.at(0.5) != b.Commit.at(0.5) || a.Commit.at(0.5) < 200*time.Millisecond ||
		a.Transaction.at(0.99) > time.Second {
		t.Errorf("commits %v and %v, transactions %v", a.Commit.at(0.5), b.Commit.at(0.5),
			a.Transaction.at(0.99))
	}
	busy := DefaultLoad
	busy.BatchLines = 5 // thousands of batches per second
	if Simulate(busy, 10*time.Second, 7).Transaction.at(0.99) < 100*time.Millisecond {
		t.Error("a database beyond its capacity answers at once")
	}
}
