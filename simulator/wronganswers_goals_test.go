package simulator

import (
	"testing"

	"github.com/tidefill/tidefill/simulator/scenario"
)

// A runner that answers quickly and wrongly takes each line that others leave, so it could fail a
// whole batch. Beside a good one it may fail a few lines before it is found out. While no runner is
// good, lines wait.
func TestWrongAnswersFailFewLines(t *testing.T) {
	for _, test := range []struct {
		file string
		most int // failed lines
	}{{"one-of-two.yaml", 20}, {"the-only-one.yaml", 0}} {
		for _, kind := range []scenario.FaultKind{scenario.Fail, scenario.Deny, scenario.Garble} {
			t.Run(test.file+" "+string(kind), func(t *testing.T) {
				s := bundled(t, "../testdata/wrong/"+test.file)
				s.Scenario.Faults[0].Kind = kind
				r := result(t, s)
				if r.Batch.Failed > test.most {
					t.Errorf("%d of %d lines failed, want %d at most", r.Batch.Failed,
						s.Scenario.Jobs[0].Lines, test.most)
				}
				if all := r.Batch.Lines + r.Batch.Failed; all != s.Scenario.Jobs[0].Lines {
					t.Errorf("%d lines ended, want all %d", all, s.Scenario.Jobs[0].Lines)
				}
			})
		}
	}
}
