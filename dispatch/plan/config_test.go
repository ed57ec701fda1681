package plan

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/scheduler"
)

// The queues of a planner assume the rate of its cost estimate for jobs whose rate is unknown.
func TestQueuesAssumeTheRateOfTheEstimate(t *testing.T) {
	for rate, want := range map[float64]string{10: "large", 1e6: "small"} {
		cfg := DefaultConfig()
		cfg.Cost.AssumedRate = rate
		p := newPlanner(t, cfg, Deps{Scheduler: scheduler.DefaultConfig(),
			Flow:   flowcontrol.DefaultConfig().Select(fixed.Name, fixed.DefaultConfig()),
			Random: rand.New(rand.NewPCG(1, 1))})
		q := p.newQueue()
		q.Put(scheduler.Job{ID: "small", Work: 1, Deadline: noon.Add(20 * time.Hour)})
		q.Put(scheduler.Job{ID: "large", Work: 1e6, Deadline: noon.Add(30 * time.Hour)})
		if got, _ := q.Next(noon); got != want {
			t.Errorf("at an assumed rate of %v: %s goes first, want %s", rate, got, want)
		}
	}
}

func TestValidateNamesTheKey(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"retry.attempts: ":           func(c *Config) { c.Retry.Attempts = 0 },
		"retry.on: ":                 func(c *Config) { c.Retry.On = []int{200} },
		"retry.tuning.deaths: ":      func(c *Config) { c.Retry.Deaths = 0 },
		"tuning.cost.prompt_token: ": func(c *Config) { c.Cost.PromptToken = 0 },
	} {
		cfg := DefaultConfig()
		change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want a fault of %s", err, want)
		}
	}
}
