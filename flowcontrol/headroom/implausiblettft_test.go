package headroom

import (
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// An objective for first tokens that the pool misses without batch lines is warned of, and so is
// one that is far above what they take.
func TestImplausibleObjectiveOfFirstTokens(t *testing.T) {
	for _, test := range []struct {
		name       string
		objective  time.Duration
		soon, late float64 // requests in each second
		reports    int
		change     func(*gateway)
		want       string // empty: none
	}{
		{"missed", 2 * time.Second, 19, 1, 100, nil, "slo.ttft is 2s, but without batch lines"},
		{"hardly missed", 2 * time.Second, 100, 0.5, 100, nil, ""},
		{"met", 2 * time.Second, 20, 0, 100, nil, ""},
		{"met by ten times", 10 * time.Second, 20, 0, 100, nil, ""},
		{"too loose", 11 * time.Second, 20, 0, 100, nil, "come within 1s without batch lines"},
		{"some take longer", 11 * time.Second, 19, 1, 100, nil, ""},
		{"few requests", 2 * time.Second, 0, 1, 20, nil, ""},
		{"too loose, of few requests", 11 * time.Second, 2, 0, 100, nil, ""},
		{"missed while it is watched", 2 * time.Second, 19, 1, 100,
			func(g *gateway) { g.watched = false }, ""},
		{"missed beside lines", 2 * time.Second, 19, 1, 100,
			func(g *gateway) { g.quiet = quiet{} }, ""},
		{"without users", 2 * time.Second, 19, 1, 100,
			func(g *gateway) { g.shared = false }, ""},
		{"none", 0, 19, 1, 100, nil, ""},
	} {
		c, _ := newPool(t, func(cfg *flowcontrol.Config) { cfg.SLO.TTFT = test.objective }, "r")
		g := &gateway{Controller: c, now: noon}
		for range test.reports {
			g.report(test.soon, test.late)
		}
		before := g.Allowance(g.now)
		g.watched = true
		if test.change != nil {
			test.change(g)
		}
		var text string
		for _, w := range g.Warnings(g.now) {
			if w.Code == flowcontrol.WarnTTFT {
				text = w.Text
			}
		}
		if !strings.Contains(text, test.want) || (text == "") != (test.want == "") {
			t.Errorf("%s: warned of %q, want %q", test.name, text, test.want)
		}
		if after := g.Allowance(g.now); test.change == nil && after.Pool != before.Pool {
			t.Errorf("%s: the pool may run %d lines after the warning, %d before", test.name,
				after.Pool, before.Pool)
		}
	}
}
