package simulator

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/simulator/scenario"
)

// Batch lines are answered wrongly for the time of a fault, and again in each of its repetitions.
// Interactive requests are not.
func TestWrongAnswers(t *testing.T) {
	for kind, ending := range map[scenario.FaultKind]string{scenario.Fail: ": failed 500",
		scenario.Deny: ": denied 401", scenario.Garble: ": garbled 200"} {
		t.Run(string(kind), func(t *testing.T) {
			s := shortScenario()
			s.Scenario.Jobs[0].Lines, s.Scenario.Jobs[0].Window = 0, 0 // without end
			s.Scenario.Faults = []scenario.Fault{{At: 40 * time.Second, Kind: kind,
				For: 20 * time.Second, Every: time.Minute}}
			var log bytes.Buffer
			s.Outputs.Events = &log
			r := result(t, s)
			wrong := map[float64]int{} // by the minute after the first begin
			for row := range strings.Lines(log.String()) {
				if !strings.Contains(row, ending) {
					continue
				}
				at, err := strconv.ParseFloat(strings.Fields(row)[0], 64)
				if err != nil {
					t.Fatal(err)
				}
				since := at - 40
				period := float64(int(since / 60))
				// The last answers of a fault are still on their way when it ends.
				if since < 0 || since-period*60 > 20.1 {
					t.Errorf("outside of the fault: %s", row)
				}
				wrong[period]++
			}
			if wrong[0] == 0 || wrong[1] == 0 || wrong[2] == 0 || len(wrong) != 3 {
				t.Errorf("wrong answers by period: %v, want some in each of 3", wrong)
			}
			if r.Batch.Lines == 0 {
				t.Error("no line is answered between the faults")
			}
			if r.Interactive.Lost+r.Interactive.Refused > 0 || r.Interactive.Requests == 0 {
				t.Errorf("interactive requests: %+v", r.Interactive)
			}
		})
	}
}
