package compare

import (
	"testing"

	"github.com/tidefill/tidefill/config"
)

// The cost model with which the configuration is validated reaches no pool: with it, a pool that
// has an entry of its own would have been planned as one of another engine.
func TestNoPoolKeepsTheCostModelOfTheValidation(t *testing.T) {
	set := func(values ...string) (c Configuration) {
		for _, value := range values {
			s, err := config.ParseSetting(value)
			if err != nil {
				t.Fatal(err)
			}
			c.Settings = append(c.Settings, s)
		}
		return c
	}
	for _, test := range []struct {
		settings []string
		want     float64
	}{
		{[]string{"flowcontrol.pools={m: {shared: false}}"}, 0},
		{[]string{"flowcontrol.pools={m: {engine: {cost_model: {c0: 20}}}}"}, 20},
		{[]string{"flowcontrol.engine.cost_model={c0: 30}",
			"flowcontrol.pools={m: {shared: false}}"}, 30},
	} {
		p, err := set(test.settings...).Policy("flowcontrol.policy=headroom")
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Flow.For("", []string{"m"}).Engine.CostModel.C0; got != test.want {
			t.Errorf("%v: c0 is %v, want %v", test.settings, got, test.want)
		}
	}
}
