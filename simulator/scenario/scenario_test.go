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

const least = "name: x\npool: {profile: llama-8b-a100, replicas: 1}\ninteractive: {generator: " +
	"conversation}\n"

func read(content string) (scenario.Scenario, error) {
	s := scenario.Default()
	err := config.Read("x.yaml", []byte(content), &s)
	return s, err
}

func TestMinimalScenario(t *testing.T) {
	s, err := read(least)
	if err != nil {
		t.Fatal(err)
	}
	if s.Horizon != time.Hour || !s.Pool.PrefixCaching || s.Interactive.SLO.Attainment != 0.99 ||
		s.Pool.Network != 20*time.Millisecond {
		t.Errorf("defaults are %+v", s)
	}
}

func TestFaultsAreNamed(t *testing.T) {
	for _, test := range []struct {
		name, content string
		want          []string
	}{
		{"empty", "", []string{"name is empty", "pool.profile is empty",
			"pool.replicas is 0 and max is 0",
			"interactive.generator is empty, and so is interactive.trace"}},
		{"mistyped key", least + "horizn: 2h\n",
			[]string{"x.yaml:4: unknown key horizn; did you mean horizon?"}},
		{"key in another section", least + "replicas: 2\n",
			[]string{"x.yaml:4: unknown key replicas; did you mean pool.replicas?"}},
		{"no unit", least + "horizon: 30\n", []string{"x.yaml:4: horizon: 30 has no unit"}},
		{"nothing left to judge", least + "horizon: 2m\n",
			[]string{"x.yaml:4: horizon is 2m0s, want more than 2m0s"}},
		{
			"several", "name: x\npool:\n  profile: p\n  replicas: -1\n  noise: 3\n  network: " +
				"-1s\ninteractive:\n  generator: chat\n  rate: -2\n  slo:\n    ttft: 0s\n    " +
				"attainment: 0.5\n", []string{
				"x.yaml:4: pool.replicas is -1", "x.yaml:5: pool.noise is 3",
				"x.yaml:6: pool.network is -1s",
				`x.yaml:8: interactive.generator: unknown population "chat"`,
				"x.yaml:9: interactive.rate is -2",
				"x.yaml:11: interactive.slo.ttft is 0s",
				"x.yaml:12: interactive.slo.attainment is 0.5, want 0.8 to 1",
			}},
		{
			"trace and generator", "name: x\npool: {profile: p, replicas: 1}\ninteractive:\n  " +
				"generator: conversation\n  trace: a.csv\n", []string{
				"x.yaml:5: interactive.trace is given beside interactive.generator; keep one"}},
		{
			"trace without a format",
			"name: x\npool: {profile: p, replicas: 1}\ninteractive:\n  trace: a.csv\n  rate: 2\n",
			[]string{
				`interactive.format is "", want one of ["azure" "mooncake" "csv"]`}},
		{
			"jobs", least + "jobs:\n- {name: a, kind: bal}\n- {name: a, kind: ball}\n- {kind: " +
				"gen, at: -1s,\n   window: -1s,\n   lines: 50001}\n- {name: b}\n- {name: c, " +
				"kind: bal, shared: 0.5}\n- {name: d, input: {median: 5}}\n- name: e\n  input: " +
				"{sigma: 1}\n  output: {median: 3, max: -1}\n  shared: 1.5\n", []string{
				`x.yaml:6: jobs[1].name is "a", like that of a job above`,
				`x.yaml:6: jobs[1].kind: unknown job kind "ball"`,
				"jobs[2].name is empty", "x.yaml:7: jobs[2].at is -1s",
				"x.yaml:8: jobs[2].window is -1s", "x.yaml:9: jobs[2].lines is 50001",
				"jobs[3].kind is empty; name one, or give input and output",
				`jobs[4].kind is "bal", which has lengths of its own`,
				"jobs[5].kind is empty; name one, or give input and output",
				"jobs[6].input.median is 0", "jobs[6].output.max is -1",
				"x.yaml:16: jobs[6].shared is 1.5",
			}},
		{
			"metrics", least + "metrics:\n  period: 1ms\n  gateway: cloud\n  ttft_buckets: [2s, " +
				"1s]\n  faults:\n  - {kind: broken, source: moon, from: 2h}\n  - {kind: reset, " +
				"from: 1m, replicas: [7],\n     to: 2m}\n  - {kind: reset, source: engine}\n  " +
				"engine: off\n", []string{
				"x.yaml:12: metrics.faults[2].source is engine, but metrics.engine is off",
				"x.yaml:5: metrics.period is 1ms", "metrics.jitter is 1s, want 0 to the period",
				`x.yaml:6: metrics.gateway is "cloud"`,
				"x.yaml:7: metrics.ttft_buckets[1] is 1s", "metrics.ttft_buckets is of a histogram",
				`x.yaml:9: metrics.faults[0].kind is "broken"`,
				`x.yaml:9: metrics.faults[0].source is "moon"`,
				"x.yaml:9: metrics.faults[0].from is 2h0m0s", "metrics.faults[0].to is 0s",
				"x.yaml:11: metrics.faults[1].to is 2m0s, but a reset takes no time",
				"x.yaml:10: metrics.faults[1].replicas holds 7; the pool has replicas 0 to 0",
			}},
		{"gateway more often", least + "metrics:\n  period: 5s\n  gateway_period: 1s\n", []string{
			"x.yaml:6: metrics.gateway_period is 1s, want 0 for the period, or from the period"}},
		{
			"users", "name: x\npool: {profile: p, replicas: 1}\ninteractive:\n  generator: " +
				"conversation\n  rate: 3\n  users:\n    count: 5\n    retries: 2\n", []string{
				"interactive.users ask when they will", "interactive.users.think is 0s",
				"x.yaml:8: interactive.users.retries is 2, but without a timeout nobody retries",
			}},
		{
			"classes", "name: x\npool: {profile: p, replicas: 1}\ninteractive:\n  generator: " +
				"conversation\n  classes:\n  - {rate: -1, generator: chat}\n  - {name: a, rate: " +
				"1}\n  - {name: a,\n     generator: conversation, users: {think: 1s}, slo: " +
				"{ttft: 2h}}\n", []string{
				"interactive.classes[0].name is empty",
				`x.yaml:6: interactive.classes[0].generator: unknown population "chat"`,
				"x.yaml:6: interactive.classes[0].rate is -1",
				"interactive.classes[1].generator is empty", "interactive.classes[1] has a rate",
				`x.yaml:8: interactive.classes[2].name is "a"`,
				"interactive.classes[2].users.count is 0",
				"x.yaml:9: interactive.classes[2].slo.ttft is 2h0m0s",
			}},
		{"a pool without a replica",
			"name: x\npool: {profile: p, replicas: 0}\ninteractive: {generator: none}\n",
			[]string{"x.yaml:2: pool.replicas is 0 and max is 0, so the pool never has a replica"}},
		{
			"a pool out of bounds", "name: x\npool:\n  profile: p\n  replicas: 5\n  min: 3\n  " +
				"max: 2\n  price: -1\n  reclaim: 1\ninteractive: {generator: none}\n", []string{
				"x.yaml:5: pool.min is 3, want at most max, 2",
				"x.yaml:4: pool.replicas is 5, want min to max, 3 to 2",
				"x.yaml:7: pool.price is -1", "x.yaml:8: pool.reclaim is 1",
			}},
		{
			"min without max", "name: x\npool: {profile: p, replicas: 5,\n  min: 3}\n" +
				"interactive: {generator: none}\n", []string{
				"x.yaml:3: pool.min is 3, but without max the number of replicas is fixed",
			}},
		{
			"starts and drains", "name: x\npool:\n  profile: p\n  replicas: 1\n  start:\n    " +
				"median: 10m\n    sigma: -1\n    new_node: 2\n    fail: .nan\n  drain: {batch: " +
				"-1s}\n  cost_model_error: {kv: -2}\n  router_view: 2m\n  discovery: -1s\n" +
				"  router: random\ninteractive: {generator: none}\n", []string{
				"x.yaml:6: pool.start.median is 10m0s, want min to max, 1m0s to 5m0s",
				"x.yaml:7: pool.start.sigma is -1", "x.yaml:8: pool.start.new_node is 2",
				"x.yaml:9: pool.start.fail is NaN",
				"x.yaml:10: pool.drain.batch is -1s", "x.yaml:11: pool.cost_model_error.kv is -2",
				"x.yaml:12: pool.router_view is 2m0s", "x.yaml:13: pool.discovery is -1s",
				`x.yaml:14: pool.router is "random", want one of ["least-work" "least-requests"`,
			}},
		{
			"names that the simulator uses", least + "batch_pools:\n" +
				"- {name: model, replicas: 1}\n- {name: chat, replicas: 1}\n" +
				"- {name: replica, replicas: 1}\n", []string{
				`x.yaml:5: batch_pools[0].name is "model", which the simulator uses itself`,
				`x.yaml:6: batch_pools[1].name is "chat"`,
				`x.yaml:7: batch_pools[2].name is "replica"`},
		},
		{
			"batch pools", least + "batch_pools:\n- {name: a, replicas: 1}\n- {name: a,\n   " +
				"replicas: -1, kv_tokens: -1}\n- {max: 2}\n", []string{
				`x.yaml:6: batch_pools[1].name is "a", the name of another pool`,
				"x.yaml:7: batch_pools[1].replicas is -1",
				"x.yaml:7: batch_pools[1].kv_tokens is -1", "batch_pools[2].name is empty",
			}},
		{
			"faults", least + "faults:\n- {at: 1h, kind: crash}\n- {kind: explode}\n- {kind: " +
				"slow}\n- {kind: crash, factor: 2, replicas: [0, 1], pool: spot, lost: found}\n- " +
				"{kind: flush, for: 1s,\n   lost: missed, replicas: [1]}\n", []string{
				"x.yaml:5: faults[0].at is 1h0m0s, want 0 to below the horizon, 1h0m0s",
				`x.yaml:6: faults[1].kind is "explode", want one of ["crash" "slow" "stall" "flush" "shed" "fail" "deny" "garble" "restart"]`,
				"faults[2].for is 0; say how long it lasts", "faults[2].factor is 0",
				"x.yaml:8: faults[3].factor is of the kind slow",
				`x.yaml:8: faults[3].lost is "found"`, `x.yaml:8: faults[3].pool is "spot"`,
				"x.yaml:9: faults[4].for is 1s, but a cache is flushed in no time",
				"x.yaml:10: faults[4].lost is of the kind crash",
				"x.yaml:10: faults[4].replicas holds 1; the pool has replicas 0 to 0",
			}},
		{
			"traffic", "name: x\npool: {profile: p, replicas: 1}\ninteractive:\n  generator: " +
				"conversation\n  shape: rates.csv\n  surges:\n  - {at: 50m, for: 20m, factor: " +
				"0.5}\n  dispersion: {var_mean: 0.5}\n  input: {sigma: 1}\n  growth: {from: " +
				"2h, to: 1h, factor: 2}\n  prefix: {share: 2}\n  cold_cache: {from: 10m, " +
				"to: 2h, share: -1}\n  bursts: {factor: 1, " +
				"gap: 48h}\n", []string{
				"x.yaml:13: interactive.bursts.factor is 1, want above 1 and at most 64",
				"interactive.bursts.length is 0s", "x.yaml:13: interactive.bursts.gap is 48h0m0s",
				"interactive.shape_column is empty; name the column of rates.csv",
				"x.yaml:7: interactive.surges[0].for is 20m0s",
				"x.yaml:7: interactive.surges[0].factor is 0.5",
				"x.yaml:8: interactive.dispersion.var_mean is 0.5",
				"interactive.dispersion.window is 0s", "interactive.input.median is 0",
				"x.yaml:10: interactive.growth.from is 2h0m0s",
				"x.yaml:11: interactive.prefix.share is 2",
				"x.yaml:12: interactive.cold_cache.to is 2h0m0s",
				"x.yaml:12: interactive.cold_cache.share is -1",
			}},
		{
			"a trace's lengths", "name: x\npool: {profile: p, replicas: 1}\ninteractive:\n  " +
				"trace: a.csv\n  format: csv\n  input: {median: 5}\n  shape_column: a\n", []string{
				"x.yaml:6: interactive.input is of a generator; a trace has its own lengths",
				"x.yaml:7: interactive.shape_column is of a file of rates",
			}},
		{
			"bursts of a trace that is played back", "name: x\npool: {profile: p, replicas: 1}\n" +
				"interactive:\n  trace: a.csv\n  format: csv\n  bursts: {factor: 2, length: 1s, " +
				"gap: 1m}\n", []string{
				"x.yaml:6: interactive.bursts is given, but the trace keeps its own times",
			}},
		{
			"no traffic", "name: x\npool: {profile: p, replicas: 1}\ninteractive:\n  " +
				"generator: none\n  rate: 3\n", []string{"x.yaml:4: interactive.generator is " +
				"none, so there is no traffic to describe"}},
		{
			"job stream", least + "job_stream: {per_hour: -1, until: 2h, lines: {median: 0, max: " +
				"60000}}\n", []string{
				"x.yaml:4: job_stream.per_hour is -1",
				"x.yaml:4: job_stream.until is 2h0m0s, but there are no jobs",
				"x.yaml:4: job_stream.until is 2h0m0s, want 0 to the horizon",
				"x.yaml:4: job_stream.lines.median is 0", "x.yaml:4: job_stream.lines.max is 60000",
			}},
		{"a name of the stream's", least +
			"jobs: [{name: job-3, kind: bal}]\njob_stream: {per_hour: 1}\n",
			[]string{`x.yaml:4: jobs[0].name is "job-3", as jobs of job_stream are called`}},
		{
			"goals", least + "goals: {loss: -1, harvest_of_gateway: 1.5, flagged_within: -1s, " +
				"ttft_above: 50ms, compared_with: {scenario: y.yaml}}\n", []string{
				"x.yaml:4: goals.loss is -1", "x.yaml:4: goals.harvest_of_gateway is 1.5",
				"x.yaml:4: goals.flagged_within is -1s",
				"x.yaml:4: goals.ttft_above is 50ms and goals.ttft 0",
				`x.yaml:4: goals.compared_with has scenario "y.yaml" and harvest 0`,
			}},
		{"restarts of the daemon", least + "faults: [{kind: restart, forget: true}, " +
			"{kind: restart, pool: x}, {kind: restart, replicas: [0]}, {kind: crash, " +
			"forget: true}]\n", []string{"faults[1] is a restart of the daemon",
			"faults[1].pool is", "faults[2] is a restart of the daemon",
			"faults[3].forget is of the kind restart"}},
		{"wrong answers", least + "faults: [{kind: fail}, {kind: deny, for: 1m, every: 1m}, " +
			"{kind: garble, for: 1ms, every: 500ms}, {kind: fail, for: 1m, every: 2m}]\n",
			[]string{"faults[0].for is 0", "faults[1].every is 1m0s, want 0 or 1s or more, and " +
				"more than for, 1m0s", "faults[2].every is 500ms"}},
		{"infinite", least + "jobs:\n- {name: a, kind: bal, lines: .inf}\n",
			[]string{"x.yaml:5: jobs[0].lines is \".inf\"; give an integer"}},
		{
			"not a number", "name: x\npool: {profile: p, replicas: 1, noise: .nan}\ninteractive: " +
				"{generator: conversation, rate: .nan}\n", []string{
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

// A scenario has only what differs from its base; values of sections are merged, lists
// replaced, and what it shows is its own.
func TestBase(t *testing.T) {
	files := map[string]string{
		"dir/a.yaml": "name: a\nabout: first\npool: {profile: p, replicas: 2, noise: 0.5}\n" +
			"interactive: {generator: conversation}\njobs: [{name: x, kind: bal}, {name: y, " +
			"kind: gen}]\n",
		"dir/b.yaml": "base: a.yaml\nname: b\npool: {replicas: 3}\njobs: [{name: z, kind: " +
			"gen}]\n",
		"dir/c.yaml":      "base: b.yaml\nname: c\nhorizon: 2h\n",
		"dir/nameless":    "base: a.yaml\nhorizon: 2h\n",
		"dir/broken":      "base: a.yaml\nname: d\npool: {replicas: -3}\n",
		"dir/of broken":   "base: broken\nname: e\n",
		"dir/circle.yaml": "base: circle.yaml\nname: f\n",
		"dir/lost.yaml":   "base: nowhere.yaml\nname: g\n",
	}
	open := func(file string) (scenario.Scenario, error) {
		return scenario.Read(file, scenario.Files{
			Read: func(file string) ([]byte, error) {
				content, ok := files[file]
				if !ok {
					return nil, os.ErrNotExist
				}
				return []byte(content), nil
			},
			Merge: func(file string, content []byte, s *scenario.Scenario) error {
				return config.Read(file, content, s)
			},
		})
	}
	c, err := open("dir/c.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if c.Name != "c" || c.About != "" || c.Horizon != 2*time.Hour || c.Pool.Profile != "p" ||
		c.Pool.Replicas != 3 || c.Pool.Noise != 0.5 || len(c.Jobs) != 1 || c.Jobs[0].Name != "z" {
		t.Errorf("a laid under b laid under c is %+v", c)
	}
	for file, want := range map[string]string{
		"dir/nameless":    "name is empty",
		"dir/broken":      "dir/broken:3: pool.replicas is -3",
		"dir/of broken":   "base of dir/of broken: dir/broken:3: pool.replicas is -3",
		"dir/circle.yaml": "is it a circle?",
		"dir/lost.yaml":   "base of dir/lost.yaml: read scenario: file does not exist",
	} {
		if _, err := open(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", file, err, want)
		}
	}
}

// The beginning of a valid scenario is valid.
func TestUntil(t *testing.T) {
	s, err := read(least + `job_stream: {per_hour: 1, until: 40m}
faults: [{at: 5m, kind: flush}, {at: 30m, kind: crash}]
metrics: {faults: [{kind: absent, from: 30m, to: 40m}]}
`)
	if err != nil {
		t.Fatal(err)
	}
	s.Interactive.Surges = []scenario.Surge{{At: time.Minute, For: 20 * time.Minute, Factor: 2},
		{At: 30 * time.Minute, For: time.Minute, Factor: 3}}
	s.Interactive.Growth = scenario.Growth{From: 0, To: time.Hour, Factor: 2}
	s.Interactive.ColdCache = scenario.ColdCache{From: time.Minute, To: 2 * time.Minute, Share: 1}
	short := s.Until(10 * time.Minute)
	if err := short.Validate(); err != nil {
		t.Fatal(err)
	}
	in := short.Interactive
	if len(short.Faults) != 1 || len(in.Surges) != 1 || in.Surges[0].For != 9*time.Minute ||
		in.Growth.Factor != 0 || in.ColdCache.Share != 1 ||
		short.JobStream.Until != 10*time.Minute {
		t.Errorf("the first ten minutes are %+v", short)
	}
	if len(s.Faults) != 2 || len(s.Interactive.Surges) != 2 {
		t.Error("the whole has changed")
	}
}

func TestFirstToken(t *testing.T) {
	slo := scenario.SLO{TTFT: 2 * time.Second, TTFTPrompt: 4000, TTFTPer1K: 200 * time.Millisecond}
	for prompt, want := range map[int]time.Duration{1: 2 * time.Second, 4000: 2 * time.Second,
		6000: 2400 * time.Millisecond, 4500: 2100 * time.Millisecond, 1 << 30: 2*time.Second +
			(1<<30-4000)*200*time.Microsecond} {
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
	f.Add(
		least + "batch_pools: [{name: s, max: 3, reclaim: 0.05, price: .4}]\nfaults: [{at: 1m, " +
			"kind: crash, replicas: [0], for: 1m}, {at: 2m, kind: slow, pool: s, for: 1s, " +
			"factor: 1.8}]\njob_stream: {per_hour: 3}\n")
	f.Add(
		least[:len(
			least)-2] + ", shape: diurnal, surges: [{at: 1m, for: 1m, factor: 3}], dispersion: " +
			"{var_mean: 70, window: 10s}, growth: {to: 1h, factor: 2}, prefix: {share: .9}, " +
			"cold_cache: {to: 1m, share: 1}}\n")
	f.Add(least[:len(least)-2] + ", slo: {ttft: 1h, ttft_per_1k: 1h}}\n")
	f.Add(
		least[:len(
			least)-2] + ", users: {count: 9, think: 1s, timeout: 2s, retries: 3}, classes: " +
			"[{name: b, generator: conversation, slo: {tpot: 1s}}]}\n")
	f.Add(
		least + "metrics: {period: 1s, ttft_buckets: [1s, 2s], gateway: histogram, faults: " +
			"[{kind: frozen, replicas: [0], from: 1m, to: 2m}]}\n")
	f.Fuzz(func(t *testing.T, content string) {
		s, err := read(content)
		if err != nil {
			return
		}
		if s.Horizon <= 2*scenario.Edge || max(s.Pool.Replicas, s.Pool.Max) < 1 ||
			!(s.Interactive.Rate >= 0) || s.Interactive.SLO.FirstToken(1<<30) <= 0 {
			t.Errorf("accepted %+v", s)
		}
		if half := s.Horizon / 2; half > 2*scenario.Edge {
			if err := s.Until(half).Validate(); err != nil {
				t.Errorf("the first half of what is accepted is not: %v", err)
			}
		}
		m := s.Metrics
		if m.Period <= 0 || m.Jitter > m.Period || !slices.IsSorted(m.TTFTBuckets) ||
			!slices.IsSorted(m.TPOTBuckets) {
			t.Errorf("accepted %+v", m)
		}
		for _, c := range s.Interactive.All() {
			if c.SLO.TTFT <= 0 || c.SLO.TPOT <= 0 || c.Users.Count > 0 && c.Users.Think <= 0 {
				t.Errorf("accepted %+v", c)
			}
		}
	})
}

// The examples in the documentation are scenarios.
func TestExamplesAreRead(t *testing.T) {
	page, err := os.ReadFile("../../docs/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	var examples []string
	for block := range strings.SplitSeq(string(page), "```yaml\n") {
		if example, _, ok := strings.Cut(block, "```"); ok && strings.Contains(example,
			"name: our pool") {
			examples = append(examples, example)
		}
	}
	if len(examples) < 3 {
		t.Fatalf("%d examples, want the first and what is based on it", len(examples))
	}
	for _, example := range examples {
		files := map[string]string{"ours.yaml": examples[0], "example.yaml": example}
		_, err := scenario.Read("example.yaml", scenario.Files{
			Read: func(file string) ([]byte, error) { return []byte(files[file]), nil },
			Merge: func(file string, content []byte, s *scenario.Scenario) error {
				return config.Read(file, content, s)
			},
		})
		if err != nil {
			t.Errorf("%v, in\n%s", err, example)
		}
	}
}

// Every key is documented.
func TestKeysAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/scenarios.md")
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
				t.Errorf("docs/scenarios.md lacks the key %s", path)
			}
		}
	}
	walk("", reflect.TypeFor[scenario.Scenario]())
}

// Flows are of requests that pass through Tidefill, and nothing else is taken for one.
func TestFlowsNeedTheInlineRouter(t *testing.T) {
	base := least[:len(least)-2] + ", flow: {class: critical, weight: 3, objective: 40ms, "
	for content, want := range map[string]string{
		base + "tenant: a, deadline: 10m}}\n":               "set pool.router to inline",
		base + "deadline: -1s}}\n":                          "interactive.flow.deadline",
		least[:len(least)-2] + ", flow: {weight: 2000}}\n":  "interactive.flow.weight",
		least[:len(least)-2] + ", flow: {objective: 2m}}\n": "interactive.flow.objective",
		least + "goals: {of_alone: 1.5}\n":                  "goals.of_alone",
	} {
		if _, err := read(content); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", content, err, want)
		}
	}
	inline, err := read(strings.Replace(base, "replicas: 1", "replicas: 1, router: inline", 1) +
		"tenant: a, deadline: 10m}}\n")
	want := scenario.Flow{Class: "critical", Weight: 3, Objective: 40 * time.Millisecond,
		Tenant: "a", Deadline: 10 * time.Minute}
	if err != nil || !inline.Inline() || inline.Interactive.All()[0].Flow != want {
		t.Errorf("%+v, %v, want %+v", inline.Interactive.Flow, err, want)
	}
}
