package compare

import "fmt"

// Published is a flow-control policy to compare with. The first of its settings are those that were
// published.
type Published struct {
	Policy   string
	Settings [][]string
}

// publishedPolicies lists the policies of the daemon to compare with. docs/flow-control.md
// describes them. The policy unlimited is not among them: against a pool that sheds load it retries
// thousands of times a second, and fixed with 128 lines shows the effect on users.
var publishedPolicies = []Published{
	{"none", [][]string{{}}},
	{"fixed", eachValue("per_runner", 1, 2, 4, 8, 12, 16, 20, 24, 32, 48, 64, 128)},
	{"aimd", withSettings(eachValue("decrease", 0.5, 0.7, 0.9), "start=5", "min=5")},
}

// publishedScaling lists the scaling policies that slack is compared with.
var publishedScaling = []string{
	"interactive", "queue_length,lines_per_replica=2000", "queue_length,lines_per_replica=10000",
	"separate", "static",
}

// eachValue returns one list of settings for each value of a key.
func eachValue[N int | float64](key string, values ...N) [][]string {
	var all [][]string
	for _, v := range values {
		all = append(all, []string{fmt.Sprintf("%s=%v", key, v)})
	}
	return all
}

// withSettings appends the same settings to each list.
func withSettings(all [][]string, more ...string) [][]string {
	for i := range all {
		all[i] = append(all[i], more...)
	}
	return all
}
