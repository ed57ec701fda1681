package bounds

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/lab/oracle"
)

// A search that found nothing has no run to repeat. Its result is used by its query alone.
func TestCacheOfASearchThatFoundNothing(t *testing.T) {
	opened, err := compare.OpenScenarios([]string{"../../scenarios/s1-steady.yaml"},
		compare.Trace{})
	if err != nil {
		t.Fatal(err)
	}
	s := opened[0]
	var log bytes.Buffer
	cache := &Cache{Dir: t.TempDir(), Log: &log}
	q := oracleQuery{scenario: &s, seed: 1, setup: s.With(1, simulator.Policy{}), runs: 8}
	nothing := oracle.Finding{Bound: oracle.Bound{Name: "G", Note: "none of 8 runs"}}
	if err := cache.put("G", q, nothing); err != nil {
		t.Fatal(err)
	}
	found, ok, err := cache.get("G", q)
	if err != nil || !ok || found.Bound.Note != nothing.Bound.Note || log.Len() > 0 {
		t.Errorf("got %+v, %v, %v, log %q", found, ok, err, &log)
	}
	q.runs = 9
	if _, ok, err := cache.get("G", q); err != nil || ok {
		t.Errorf("the result of another budget is used: %v", err)
	}
	// A harvest that no policy attains is not trusted.
	nothing.Bound.Useful = 1
	if err := cache.put("G", q, nothing); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := cache.get("G", q); err != nil || ok || !strings.Contains(log.String(),
		"stale") {
		t.Errorf("a harvest without a policy: %v, %v, log %q", ok, err, &log)
	}
}
