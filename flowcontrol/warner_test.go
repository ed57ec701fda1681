package flowcontrol_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

func TestImplausibleObjectives(t *testing.T) {
	for _, test := range []struct {
		tpot, alone time.Duration
		want        string // empty: plausible
	}{
		{100 * time.Millisecond, 34 * time.Millisecond, ""},
		{100 * time.Millisecond, 20 * time.Millisecond, ""},
		{100 * time.Millisecond, 19960 * time.Microsecond, "take only 20ms without batch lines"},
		{100 * time.Millisecond, 100 * time.Millisecond, ""},
		{100 * time.Millisecond, 101 * time.Millisecond, "take 101ms without batch lines, so none"},
		{0, 20 * time.Millisecond, ""},
		{100 * time.Millisecond, 0, ""}, // not known
	} {
		got, is := flowcontrol.SLO{TPOT: test.tpot}.Implausible(test.alone)
		if is != (test.want != "") || !strings.Contains(got.Text, test.want) ||
			is && got.Code != flowcontrol.WarnObjective {
			t.Errorf("%v with iterations of %v: %+v, want %q", test.tpot, test.alone, got,
				test.want)
		}
	}
}
