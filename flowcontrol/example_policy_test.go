package flowcontrol_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/flowcontroltest"
)

// weekend is a policy as another module would have it: it carries a number of lines per runner on
// weekdays and another one on Saturdays and Sundays. A program links it by importing its package.

// WeekendConfig is the configuration of the policy weekend.
type WeekendConfig struct {
	// Weekday is how many lines a runner carries from Monday to Friday, in UTC. Default: 4.
	Weekday int `yaml:"weekday"`
	// Weekend is the same for Saturday and Sunday. Default: 32.
	Weekend int `yaml:"weekend"`
}

// Validate reports every fault with the path of its field.
func (c WeekendConfig) Validate() error {
	if c.Weekday < 0 || c.Weekend < 0 {
		return errors.New("weekday: neither it nor weekend may be negative")
	}
	return nil
}

func init() {
	flowcontrol.Register("weekend", flowcontrol.Factory{
		Default: WeekendConfig{Weekday: 4, Weekend: 32},
		New: func(cfg flowcontrol.Config) (flowcontrol.Controller, error) {
			return &weekend{cfg: flowcontrol.OwnConfig[WeekendConfig](cfg, "weekend")}, nil
		},
	})
}

// weekend keeps its runners in a Roster, which respects Retry-After and pauses after sheds.
type weekend struct {
	cfg    WeekendConfig
	roster flowcontrol.Roster[struct{}]
}

func (*weekend) Name() string { return "weekend" }

func (w *weekend) Observe(now time.Time, o flowcontrol.Observation) (changed bool) {
	_, changed = w.roster.Observe(now, o, struct{}{})
	return changed
}

func (w *weekend) Allowance(now time.Time) flowcontrol.Allowance {
	lines := w.cfg.Weekday
	if day := now.UTC().Weekday(); day == time.Saturday || day == time.Sunday {
		lines = w.cfg.Weekend
	}
	a := w.roster.Allowance(now, func(*flowcontrol.Member[struct{}]) (int, flowcontrol.Reason) {
		return lines, flowcontrol.ReasonRunnerLimit
	})
	// Time alone changes the allowance at midnight, so the driver asks again then.
	midnight := now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	if len(a.Runners) > 0 && (a.Until.IsZero() || midnight.Before(a.Until)) {
		a.Until = midnight
	}
	return a
}

// A policy of another module, with settings of its own in the daemon's configuration file.
func ExampleRegister() {
	cfg, err := config.Parse("tidefill.yaml", []byte(`
flowcontrol:
  policy: weekend
  weekend: {weekend: 100}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := flowcontrol.New(cfg.FlowControl)
	if err != nil {
		fmt.Println(err)
		return
	}
	friday := time.Date(2026, 3, 13, 23, 59, 0, 0, time.UTC)
	c.Observe(friday, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: "gpu-0"}})
	a := c.Allowance(friday)
	fmt.Println(a.Runners[0].Lines, "lines until", a.Until.Format(time.DateTime))
	fmt.Println(c.Allowance(a.Until).Runners[0].Lines, "lines then")

	// Keys that the policy does not have are errors.
	_, err = config.Parse("f.yaml", []byte("flowcontrol: {weekend: {wekday: 3}}"))
	fmt.Println(err)
	// Output:
	// 4 lines until 2026-03-14 00:00:00
	// 100 lines then
	// f.yaml:1: unknown key flowcontrol.weekend.wekday; did you mean flowcontrol.weekend.weekday?
}

// The conformance suite shows what a policy forgot.
func TestPolicyOfAnotherModuleKeepsTheContract(t *testing.T) {
	limits := flowcontroltest.Limits{PerRunner: 9}
	flowcontroltest.TestController(t, limits, flowcontrol.NeedsOf("weekend"),
		func() flowcontrol.Controller {
			c, err := flowcontrol.New(flowcontrol.DefaultConfig().Select("weekend",
				WeekendConfig{Weekday: 3, Weekend: 9}))
			if err != nil {
				t.Fatal(err)
			}
			return c
		})
}

// Settings of a policy that is not linked, and faults in those of one that is, name their key.
func TestFaultsInSettingsOfPolicies(t *testing.T) {
	for file, want := range map[string]string{
		"flowcontrol: {wekend: {}}": "f.yaml:1: unknown key flowcontrol.wekend; " +
			"did you mean flowcontrol.weekend?",
		"flowcontrol: {policy: wekend}": `f.yaml:1: flowcontrol.policy: unknown policy "wekend": ` +
			`did you mean "weekend"? there are aimd, `,
		"flowcontrol: {elsewhere: {lines: 3}}": "f.yaml:1: unknown key flowcontrol.elsewhere; ",
		"flowcontrol: {weekend: {weekday: -1}}": "f.yaml:1: flowcontrol.weekend.weekday: " +
			"neither it nor weekend may be negative",
		"flowcontrol: {weekend: 3}": `f.yaml:1: flowcontrol.weekend is "3", `,
	} {
		_, err := config.Parse("f.yaml", []byte(file))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s\n got %v\nwant %s", file, err, want)
		}
	}
}
