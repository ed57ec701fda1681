package simulator

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/flowcontrol"
)

// A warning is kept once, with its first text and time, and the minutes that it holds.
func TestWarningsOfAPolicyAreCollected(t *testing.T) {
	s := bundled(t, "s1-steady.yaml")
	s.Scenario.Horizon = 6 * time.Minute
	withRecorder(&s, 1, 0, nil, func(time.Time, flowcontrol.Observation) {})
	spy := newController
	newController = func() *recordingController {
		c := spy()
		c.warn = func(now time.Time) []flowcontrol.Warning {
			if minute := int(now.Sub(epoch).Minutes()); minute >= 2 && minute != 4 {
				return []flowcontrol.Warning{{Code: "odd", Text: fmt.Sprint("minute ", minute)}}
			}
			return nil
		}
		return c
	}
	r, err := RunBatch(s, silent)
	if err != nil {
		t.Fatal(err)
	}
	want := []PolicyWarning{{Pool: "model", Code: "odd", Text: "minute 2", From: 120, Minutes: 4}}
	if diff := cmp.Diff(want, r.Warnings); diff != "" {
		t.Error(diff)
	}
}
