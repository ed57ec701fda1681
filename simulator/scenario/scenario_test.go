package scenario_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/simulator/scenario"
)

const least = "name: x\npool: {profile: llama-8b-a100, replicas: 1}\ninteractive: {generator: conversation}\n"

func read(content string) (scenario.Scenario, error) {
	s := scenario.Default()
	err := config.Read("x.yaml", []byte(content), &s)
	return s, err
}

func TestTheLeastIsEnough(t *testing.T) {
	s, err := read(least)
	if err != nil {
		t.Fatal(err)
	}
	if s.Horizon != time.Hour || !s.Pool.PrefixCaching || s.Interactive.SLO.Attainment != 0.99 || s.Pool.Network != 20*time.Millisecond {
		t.Errorf("defaults are %+v", s)
	}
}

func TestFaultsAreNamed(t *testing.T) {
	for _, test := range []struct {
		name, content string
		want          []string
	}{
		{"empty", "", []string{"name is empty", "pool.profile is empty", "pool.replicas is 0 and max is 0", "interactive.generator is empty, and so is interactive.trace"}},
		{"mistyped key", least + "horizn: 2h\n", []string{"x.yaml:4: unknown key horizn; did you mean horizon?"}},
		{"key in another section", least + "replicas: 2\n", []string{"x.yaml:4: unknown key replicas; did you mean pool.replicas?"}},
		{"no unit", least + "horizon: 30\n", []string{"x.yaml:4: horizon: 30 has no unit"}},
		{"nothing left to judge", least + "horizon: 2m\n", []string{"x.yaml:4: horizon is 2m0s, want more than 2m0s"}},
		{"several", "name: x\npool:\n  profile: p\n  replicas: -1\n  noise: 3\n  network: -1s\ninteractive:\n  generator: chat\n  rate: -2\n  slo:\n    ttft: 0s\n    attainment: 0.5\n", []string{
			"x.yaml:4: pool.replicas is -1", "x.yaml:5: pool.noise is 3", "x.yaml:6: pool.network is -1s",
			`x.yaml:8: interactive.generator: unknown population "chat"`, "x.yaml:9: interactive.rate is -2",
			"x.yaml:11: interactive.slo.ttft is 0s", "x.yaml:12: interactive.slo.attainment is 0.5, want 0.97 to 1",
		}},
		{"trace and generator", "name: x\npool: {profile: p, replicas: 1}\ninteractive:\n  generator: conversation\n  trace: a.csv\n", []string{
			"x.yaml:5: interactive.trace is given beside interactive.generator; keep one"}},
		{"trace without a format", "name: x\npool: {profile: p, replicas: 1}\ninteractive:\n  trace: a.csv\n  rate: 2\n", []string{
			`interactive.format is "", want one of ["azure" "mooncake" "csv"]`}},
		{"jobs", least + "jobs:\n- {name: a, kind: bal}\n- {name: a, kind: ball}\n- {kind: gen, at: -1s,\n   window: -1s,\n   lines: 50001}\n", []string{
			`x.yaml:6: jobs[1].name is "a", like that of a job above`, `x.yaml:6: jobs[1].kind: unknown job kind "ball"`,
			"jobs[2].name is empty", "x.yaml:7: jobs[2].at is -1s", "x.yaml:8: jobs[2].window is -1s", "x.yaml:9: jobs[2].lines is 50001",
		}},
		{"metrics", least + "metrics:\n  period: 1ms\n  gateway: cloud\n  ttft_edges: [2s, 1s]\n  faults:\n  - {kind: broken, source: moon, from: 2h}\n  - {kind: reset, from: 1m,\n     to: 2m}\n", []string{
			"x.yaml:5: metrics.period is 1ms", "metrics.jitter is 1s, want 0 to the period", `x.yaml:6: metrics.gateway is "cloud"`,
			"x.yaml:7: metrics.ttft_edges[1] is 1s", "metrics.ttft_edges is of a histogram", `x.yaml:9: metrics.faults[0].kind is "broken"`,
			`x.yaml:9: metrics.faults[0].source is "moon"`, "x.yaml:9: metrics.faults[0].from is 2h0m0s", "metrics.faults[0].to is 0s",
			"x.yaml:11: metrics.faults[1].to is 2m0s, but a reset takes no time",
		}},
		{"users", "name: x\npool: {profile: p, replicas: 1}\ninteractive:\n  generator: conversation\n  rate: 3\n  users:\n    count: 5\n    retries: 2\n", []string{
			"interactive.users ask when they will", "interactive.users.think is 0s", "x.yaml:8: interactive.users.retries is 2, but nobody hangs up",
		}},
		{"classes", "name: x\npool: {profile: p, replicas: 1}\ninteractive:\n  generator: conversation\n  classes:\n  - {rate: -1, generator: chat}\n  - {name: a, rate: 1}\n  - {name: a,\n     generator: conversation, users: {think: 1s}, slo: {ttft: 2h}}\n", []string{
			"interactive.classes[0].name is empty", `x.yaml:6: interactive.classes[0].generator: unknown population "chat"`, "x.yaml:6: interactive.classes[0].rate is -1",
			"interactive.classes[1].generator is empty", "interactive.classes[1] has a rate", `x.yaml:8: interactive.classes[2].name is "a"`,
			"interactive.classes[2].users.count is 0", "x.yaml:9: interactive.classes[2].slo.ttft is 2h0m0s",
		}},
		{"infinite", least + "jobs:\n- {name: a, kind: bal, lines: .inf}\n", []string{"x.yaml:5: jobs[0].lines is \".inf\", not an integer"}},
		{"not a number", "name: x\npool: {profile: p, replicas: 1, noise: .nan}\ninteractive: {generator: conversation, rate: .nan}\n", []string{
			"pool.noise is NaN", "interactive.rate is NaN"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := read(test.content)
			if faults := config.Faults(err); len(faults) != len(test.want) {
				t.Fatalf("%d faults, want %d:\n%v", len(faults), len(test.want), err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no fault holds %q:\n%v", want, err)
				}
			}
		})
	}
}

func TestFirstToken(t *testing.T) {
	slo := scenario.SLO{TTFT: 2 * time.Second, TTFTPrompt: 4000, TTFTPer1K: 200 * time.Millisecond}
	for prompt, want := range map[int]time.Duration{1: 2 * time.Second, 4000: 2 * time.Second, 6000: 2400 * time.Millisecond, 4500: 2100 * time.Millisecond, 1 << 30: 2*time.Second + (1<<30-4000)*200*time.Microsecond} {
		if got := slo.FirstToken(prompt); got != want {
			t.Errorf("a prompt of %d tokens may take %v, want %v", prompt, got, want)
		}
	}
}

func FuzzScenario(f *testing.F) {
	files, err := filepath.Glob("../scenarios/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("%d scenarios, %v", len(files), err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(content))
	}
	f.Add(least + "jobs: [{name: a, kind: gen, at: 1d, window: 1h, lines: 3}]\n")
	f.Add(least[:len(least)-2] + ", slo: {ttft: 1h, ttft_per_1k: 1h}}\n")
	f.Add(least[:len(least)-2] + ", users: {count: 9, think: 1s, timeout: 2s, retries: 3}, classes: [{name: b, generator: conversation, slo: {tpot: 1s}}]}\n")
	f.Add(least + "metrics: {period: 1s, ttft_edges: [1s, 2s], gateway: histogram, faults: [{kind: frozen, replicas: [0], from: 1m, to: 2m}]}\n")
	f.Fuzz(func(t *testing.T, content string) {
		s, err := read(content)
		if err != nil {
			return
		}
		if s.Horizon <= 2*scenario.Edge || max(s.Pool.Replicas, s.Pool.Max) < 1 || !(s.Interactive.Rate >= 0) || s.Interactive.SLO.FirstToken(1<<30) <= 0 {
			t.Errorf("accepted %+v", s)
		}
		m := s.Metrics
		if m.Period <= 0 || m.Jitter > m.Period || !slices.IsSorted(m.TTFTEdges) || !slices.IsSorted(m.TPOTEdges) {
			t.Errorf("accepted %+v", m)
		}
		for _, c := range s.Interactive.All() {
			if c.SLO.TTFT <= 0 || c.SLO.TPOT <= 0 || c.Users.Count > 0 && c.Users.Think <= 0 {
				t.Errorf("accepted %+v", c)
			}
		}
	})
}

// Every key stands in the documentation.
func TestKeysAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/simulator.md")
	if err != nil {
		t.Fatal(err)
	}
	var walk func(prefix string, typ reflect.Type)
	walk = func(prefix string, typ reflect.Type) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			path := prefix + f.Tag.Get("yaml")
			switch {
			case f.Anonymous:
				walk(prefix, f.Type)
			case f.Type.Kind() == reflect.Struct:
				walk(path+".", f.Type)
			case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
				walk(path+"[].", f.Type.Elem())
			case !strings.Contains(string(page), "`"+path+"`"):
				t.Errorf("docs/simulator.md lacks the key %s", path)
			}
		}
	}
	walk("", reflect.TypeFor[scenario.Scenario]())
}
