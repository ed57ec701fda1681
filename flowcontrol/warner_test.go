package flowcontrol_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

func TestImplausibleTTFT(t *testing.T) {
	const second = time.Second
	for _, test := range []struct {
		ttft, least, most time.Duration
		want              string // empty: plausible
	}{
		{2 * second, second, 2 * second, ""},
		{2 * second, 2 * second, 4 * second, ""},
		{2 * second, 2100 * time.Millisecond, 4 * second, "take 2.1s or longer, so the pool"},
		{2 * second, 3 * second, 0, "take 3s or longer, so the pool misses it by itself"},
		{10 * second, 0, second, ""},
		{10*second + 1, 0, second, "come within 1s without batch lines"},
		{2 * second, 0, 0, ""}, // not known
		{0, 3 * second, 4 * second, ""},
		{0, 0, time.Millisecond, ""},
	} {
		got, is := flowcontrol.SLO{TTFT: test.ttft}.ImplausibleTTFT(test.least, test.most)
		if is != (test.want != "") || !strings.Contains(got.Text, test.want) ||
			is && got.Code != flowcontrol.WarnTTFT {
			t.Errorf("%v with first tokens of %v to %v: %+v, want %q", test.ttft, test.least,
				test.most, got, test.want)
		}
	}
}

func TestImplausibleObjectives(t *testing.T) {
	for _, test := range []struct {
		tpot, alone time.Duration
		want        string // empty: plausible
	}{
		{100 * time.Millisecond, 34 * time.Millisecond, ""},
		{100 * time.Millisecond, 20 * time.Millisecond, ""},
		{100 * time.Millisecond, 19960 * time.Microsecond, "take only 20ms without batch lines, " +
			"less than a fifth of it, so lines are limited by 79.8ms"},
		{100 * time.Millisecond, 100 * time.Millisecond, ""},
		{100 * time.Millisecond, 101 * time.Millisecond, "take 101ms without batch lines, so none"},
		{0, 20 * time.Millisecond, ""},
		{100 * time.Millisecond, 0, ""}, // not known
	} {
		got, is := flowcontrol.SLO{TPOT: test.tpot}.Implausible(test.alone, 4*test.alone)
		if is != (test.want != "") || !strings.Contains(got.Text, test.want) ||
			is && got.Code != flowcontrol.WarnObjective {
			t.Errorf("%v with iterations of %v: %+v, want %q", test.tpot, test.alone, got,
				test.want)
		}
	}
}
