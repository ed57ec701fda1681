package compare

import (
	"io"
	"testing"

	"github.com/tidefill/tidefill/simulator/scenario"
)

// The work is done when all oracles have finished, although one of them needs fewer runs than it
// may spend.
func TestProgressIncludesOracles(t *testing.T) {
	s := &Scenario{}
	s.Scenario = scenario.Default()
	c := &Comparison{Scenarios: []Scenario{*s}, Seeds: []uint64{1}, Candidates: []Candidate{{}},
		Oracles: true, OracleRuns: 20}
	progress := NewProgress(io.Discard, c.duration())
	defer progress.Stop()
	for range 2 { // without batch work, and with it
		if err := progress.Run(t.Context(), s, "")(1); err != nil {
			t.Fatal(err)
		}
	}
	for name, runs := range map[string]int{"E": 7, "G": 20} {
		before := progress.share()
		run, finish := progress.search(t.Context(), s, name, c.searchRuns(s))
		for range runs {
			if err := run(0); err != nil {
				t.Fatal(err)
			}
		}
		if got := progress.share() - before; !(got > 0.3*float64(runs)/20 && got < 0.48) {
			t.Errorf("%d runs of %s add %v to the share", runs, name, got)
		}
		finish()
	}
	if got := progress.share(); !(got > 0.999 && got < 1.001) || progress.done.sum() > 29.001 {
		t.Errorf("at the end the share is %v, after %v hours", got, progress.done.sum())
	}
	progress.expect(s, 1) // a race adds a run
	if got := progress.share(); got > 0.98 {
		t.Errorf("before a run that was added the share is %v", got)
	}
	if err := progress.Run(t.Context(), s, "")(1); err != nil {
		t.Fatal(err)
	}
	if got := progress.share(); !(got > 0.999 && got < 1.001) {
		t.Errorf("after it the share is %v", got)
	}
}
