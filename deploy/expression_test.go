package deploy_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/internal/metriclist"
)

// known holds the labels of the daemon's metrics by the names of their series.
type known map[string][]string

func knownMetrics(t *testing.T) known {
	t.Helper()
	metrics, err := metriclist.List()
	if err != nil {
		t.Fatal(err)
	}
	k := known{"up": nil}
	for _, m := range metrics {
		k[m.Name] = m.Labels
		if m.Type == "histogram" {
			k[m.Name+"_sum"], k[m.Name+"_count"] = m.Labels, m.Labels
			k[m.Name+"_bucket"] = append([]string{"le"}, m.Labels...)
			delete(k, m.Name)
		}
	}
	return k
}

var (
	series = regexp.MustCompile(`\b((?:tidefill|emulator|vllm)_\w+|up\b)(?:\{([^}]*)\})?`)
	label  = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"`)
	lists  = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right) *\(([^)]*)\)`)
)

// faults lists the metrics and labels of a PromQL expression that the daemon does not have. shown
// names further labels that are expected of its result.
func (k known) faults(expression string, shown ...string) (faults []string) {
	labels := []string{"job", "instance"} // every series has them
	for _, m := range series.FindAllStringSubmatch(expression, -1) {
		of, found := k[m[1]]
		if !found {
			faults = append(faults, fmt.Sprintf("no metric %s", m[1]))
		}
		for _, l := range label.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(of, l[1]) && !slices.Contains(labels[:2], l[1]) {
				faults = append(faults, fmt.Sprintf("%s has no label %s", m[1], l[1]))
			}
		}
		labels = append(labels, of...)
	}
	for _, list := range lists.FindAllStringSubmatch(expression, -1) {
		for name := range strings.SplitSeq(list[1], ",") {
			if name = strings.TrimSpace(name); name != "" {
				shown = append(shown, name)
			}
		}
	}
	for _, name := range shown {
		if !slices.Contains(labels, name) {
			faults = append(faults, fmt.Sprintf("no metric of it has the label %s", name))
		}
	}
	return faults
}

func TestFaultsOfExpressionsAreFound(t *testing.T) {
	k := known{"tidefill_a": {"pool"}, "tidefill_b_bucket": {"le", "runner"}}
	for expression, want := range map[string]int{
		`sum by (pool, job) (tidefill_a{pool=~"x",instance!="y"})`:                0,
		`histogram_quantile(0.5, sum by (le) (rate(tidefill_b_bucket[5m])))`:      0,
		`tidefill_a / on (pool) group_left (runner) tidefill_b_bucket{runner=""}`: 0,
		`tidefill_c`:                        1,
		`tidefill_b`:                        1,
		`tidefill_a{runner="x"}`:            1,
		`sum by (tenant) (tidefill_a)`:      1,
		`tidefill_a > on (runner) 5 * up`:   2,
		`sum without(pol) (tidefill_a) > 1`: 1,
	} {
		if got := k.faults(expression); len(got) != want {
			t.Errorf("%s: faults %q, want %d", expression, got, want)
		}
	}
	if got := k.faults("tidefill_a", "pool", "reason"); len(got) != 1 {
		t.Errorf("a legend with an unknown label: faults %q, want 1", got)
	}
}
