package lead

import (
	"slices"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/dispatch/upstream"
)

func TestGroupsOf(t *testing.T) {
	for name, test := range map[string]struct {
		runners string // of each its name, "@pool" if it has one, and its models
		scaled  map[string]string
		want    []string
	}{
		"each model has its runner": {
			runners: "a m; b n", want: []string{"model/m runner/a", "model/n runner/b"}},
		"runners of the same model": {
			runners: "a m; b m; c n", want: []string{"model/m runner/a runner/b",
				"model/n runner/c"}},
		"by way of another": {
			runners: "a m n; b n o; c o; d p",
			want: []string{"model/m model/n model/o runner/a runner/b runner/c",
				"model/p runner/d"}},
		"the same pool": {
			runners: "a@x m; b@x n; c@y o",
			want:    []string{"model/m model/n runner/a runner/b", "model/o runner/c"}},
		"scaled models": {
			runners: "a m; b n; c o", scaled: map[string]string{"m": "p", "o": "q", "absent": "r"},
			want: []string{"model/m model/o runner/a runner/c", "model/n runner/b"}},
		"none": {},
	} {
		t.Run(name, func(t *testing.T) {
			models := map[*upstream.Runner][]string{}
			for text := range strings.SplitSeq(test.runners, "; ") {
				fields := strings.Fields(text)
				if len(fields) == 0 {
					continue
				}
				name, pool, _ := strings.Cut(fields[0], "@")
				models[runnerOfTest(t, upstream.Upstream{URL: "http://" + name,
					Pool: pool})] = fields[1:]
			}
			var got []string
			for _, g := range groupsOf(models, test.scaled) {
				got = append(got, strings.ReplaceAll(strings.Join(g, " "), "http://", ""))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// Each of some processes prefers other groups, always the same.
func TestPreferredGroups(t *testing.T) {
	var groups []group
	for _, name := range "abcdefghijkl" {
		groups = append(groups, group{runnerPrefix + string(name)})
	}
	first := map[string]int{}
	for _, node := range []string{"n0", "n1", "n2", "n3", "n4", "n5"} {
		order := preferred(node, groups)
		again := slices.Clone(groups)
		slices.Reverse(again)
		if !slices.EqualFunc(order, preferred(node, again), slices.Equal[group]) {
			t.Errorf("%s: the order depends on that of the argument", node)
		}
		first[order[0][0]]++
	}
	if len(first) < 4 {
		t.Errorf("six processes prefer %v", first)
	}
}
