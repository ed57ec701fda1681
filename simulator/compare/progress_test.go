package compare

import (
	"io"
	"testing"

	"github.com/tidefill/tidefill/simulator/scenario"
)

// The work is done when all runs have finished or are not needed, also those that were added.
func TestProgress(t *testing.T) {
	s := &Scenario{}
	s.Scenario = scenario.Default()
	c := &Comparison{Scenarios: []Scenario{*s}, Seeds: []uint64{1, 2},
		Candidates: []Candidate{{}, {Variant: true}}}
	progress := NewProgress(io.Discard, c.duration())
	defer progress.Stop()
	run := func() {
		if err := progress.Run(t.Context(), s, "")(1); err != nil {
			t.Fatal(err)
		}
	}
	done := func(want float64) {
		t.Helper()
		if got := progress.share(); !(got > want-0.001 && got < want+0.001) {
			t.Errorf("the share is %v, want %v", got, want)
		}
	}
	for range 3 { // two without batch work, and one with it
		run()
	}
	done(0.6)
	progress.Skip(s, 1)
	done(0.8)
	run()
	done(1)
	progress.expect(s, 1) // a race adds a run
	done(5. / 6)
	run()
	done(1)
}
