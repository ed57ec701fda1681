package randompools

import (
	"testing"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/lab/oracle"
)

// accepting returns a pool whose engines refuse what exceeds some lines, and that costs the given
// loss for each line.
func accepting(lines int, loss float64, most *int) staticSearch {
	return staticSearch{run: func(s oracle.StaticSetting) (simulator.Result, error) {
		*most = max(*most, s.Lines)
		carried := min(s.Lines, lines) * s.Runners
		r := simulator.Result{Loss: loss * float64(carried),
			Jobs: []simulator.Job{{Outcome: simulator.Unfinished}}}
		r.Batch.Useful, r.Batch.Lines = int64(carried), carried
		if s.Lines > lines {
			r.Batch.Sheds = 1000 * carried
		}
		return r, nil
	}}
}

func TestTheSearchDoesNotRunRefusedLines(t *testing.T) {
	for _, c := range []struct {
		lines   int
		loss    float64
		want    Reference
		highest int
	}{
		{20, 0, Reference{Lines: 24, Runners: 8, Harvest: 160}, 24},
		{20, 0.01, Reference{Lines: 12, Runners: 8, Harvest: 96, Loss: 0.96}, 64},
		{1000, 0, Reference{Lines: 256, Runners: 8, Harvest: 2048}, 256},
	} {
		most := 0
		search := accepting(c.lines, c.loss, &most)
		got, err := search.best(8, 256)
		if err != nil {
			t.Fatal(err)
		}
		got.Runs = 0
		if got != c.want || most > c.highest {
			t.Errorf("%d lines accepted at a loss of %v each: %+v after runs with up to %d lines, "+
				"want %+v and up to %d", c.lines, c.loss, got, most, c.want, c.highest)
		}
	}
}
