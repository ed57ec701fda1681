package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/config"
)

// Each fault of a pool names the entry and the remedy, and other entries are judged too.
func TestFaultsOfPools(t *testing.T) {
	_, err := config.Parse("f.yaml", []byte(`
pools:
  - {name: chat, models: [m], max: 4}
  - {name: chat, models: [m], max: 4}
  - {name: Night, models: [m], max: 4}
  - {name: spot, max: 4, role: cheap}
  - {name: small, models: [m], min: 3, max: 2, reclaim: 2}
  - {name: pd, models: [m], max: 4, kubernetes: {selector: a=b, prefill: c=d, decode: c=e}}
  - {name: pg, models: [m], max: 4, kubernetes: {selector: a=b, prefill: c=d, decode: c=e}}
upstreams:
  - {url: http://localhost:3, pool: pg, mode: gateway}
  - {url: http://localhost:1, pool: chta}
  - {url: http://localhost:2, pool: chat}
`))
	var got []string
	for _, fault := range config.Faults(err) {
		got = append(got, fault.Error())
	}
	want := []string{
		`f.yaml:4: pools[1].name: pools[0] is named "chat" too; give each pool a name of its own`,
		`f.yaml:5: pools[2].name: is "Night", must be 1 to 63 lower-case letters, digits and dashes`,
		`f.yaml:6: pools[3].models: is empty; list the models that the pool serves, since a pool ` +
			`without replicas can't be asked`,
		`f.yaml:6: pools[3].role: is "cheap", must be shared or batch`,
		`f.yaml:7: pools[4].max: is 2 and min 3; max must be at least 1, and min from 0 to max`,
		`f.yaml:7: pools[4].reclaim: is 2, must be from 0 to 1`,
		`f.yaml:8: pools[5].kubernetes.prefill: no upstream leads to the pool; list its router ` +
			`in upstreams with mode: gateway and pool: pd`,
		`f.yaml:12: upstreams[1].pool: there is no pool "chta"; pools has chat, Night, spot, ` +
			`small, pd, pg`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
