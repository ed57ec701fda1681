package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/lab/bench"
	"github.com/tidefill/tidefill/simulator/lab/live"
	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

// defaultLivePolicies are compared if none are named.
const defaultLivePolicies = "fixed,per_runner=8 aimd headroom headroom,streams=all"

// liveRun is the result of a policy.
type liveRun struct {
	Policy    string       `json:"policy"` // empty: no batch work
	Live      live.Outcome `json:"live"`
	Loss      float64      `json:"loss_points"`
	Predicted prediction   `json:"predicted,omitempty"`
	// Recoveries has a row for each fault of the scenario.
	Recoveries []recovered `json:"recoveries,omitempty"`
}

// liveBench is one run of the command.
type liveBench struct {
	trace, format     string
	horizon           time.Duration // 0: the scenario's
	seed              uint64
	policyText, kills string
	settingText       string
	simulate, json    bool
	config            live.Config

	scenario compare.Scenario
	policies []string
	settings []string
	dir      string // temporary
	stderr   io.Writer
}

func liveCommand() *cobra.Command {
	var b liveBench
	cmd := &cobra.Command{
		Use:   "live SCENARIO.yaml",
		Short: "Run a scenario in real time, with the daemon and emulated runners",
		Long: `Run a scenario in real time, once without batch work and once with each policy: emulated runners, the daemon, a Prometheus and a
router with users, each a process of its own but for the last two. The table compares with what nine simulations predict. A scenario takes
its horizon for each policy. simulator/lab/docs/benchmarks.md has the rest.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			b.stderr = cmd.ErrOrStderr()
			return b.execute(cmd.Context(), args[0], cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&b.policyText, "policies", defaultLivePolicies,
		"space-separated `policies`, each with settings of its own after commas")
	flags.StringVar(&b.trace, "trace", "",
		"a `file` of interactive traffic in place of the scenario's")
	flags.StringVar(&b.format, "format", string(workload.Azure), "its `format`: azure or mooncake")
	flags.DurationVar(&b.horizon, "for", 0,
		"end each run after this time (default: the scenario's horizon)")
	flags.Uint64Var(&b.seed, "seed", 1, "seed of traffic and lines")
	flags.BoolVar(&b.simulate, "simulate", true, "compare with the simulator's prediction")
	flags.StringVar(&b.kills, "kill-daemon", "",
		"comma-separated `times` at which the daemon is killed and started again")
	flags.StringVar(&b.settingText, "set", "",
		"space-separated further settings of the daemon, key=value")
	flags.StringVar(&b.config.Prometheus, "prometheus", "prometheus", "`path` of Prometheus")
	flags.DurationVar(&b.config.Scrape, "scrape", 5*time.Second,
		"`interval` of Prometheus's scrapes")
	flags.IntVar(&b.config.Backlog, "backlog", 20_000, "`lines` of a job without end")
	flags.BoolVar(&b.json, "json", false, "print the results as JSON")
	return cmd
}

func (b *liveBench) execute(ctx context.Context, file string, stdout io.Writer) (err error) {
	killed, err := parseTimes(b.kills)
	if err != nil {
		return err
	}
	b.policies, b.settings = strings.Fields(b.policyText), strings.Fields(b.settingText)
	if err := b.open(file); err != nil {
		return err
	}
	b.killDaemon(killed)
	if b.dir, err = os.MkdirTemp("", "tidefill-live-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	b.config.Tidefill = filepath.Join(b.dir, "tidefill")
	if err := bench.Build(ctx, b.config.Tidefill); err != nil {
		return err
	}
	results, err := b.run(ctx)
	if err != nil {
		return err
	}
	if b.json {
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		return encoder.Encode(results)
	}
	if err := writeLiveTable(stdout, results); err != nil {
		return err
	}
	return writeRecoveries(stdout, results)
}

func (b *liveBench) logf(format string, args ...any) {
	fmt.Fprintf(b.stderr, format+"\n", args...)
}

func parseTimes(text string) (all []time.Duration, err error) {
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		t, err := time.ParseDuration(part)
		if err != nil {
			return nil, fmt.Errorf("--kill-daemon: %w", err)
		}
		all = append(all, t)
	}
	return all, nil
}

func (b *liveBench) open(file string) error {
	all, err := compare.OpenScenarios([]string{file}, compare.Trace{File: b.trace,
		Format: workload.Format(b.format)})
	if err != nil {
		return err
	}
	b.scenario = all[0]
	b.scenario.Seed = b.seed
	if b.horizon > 0 {
		b.scenario.Scenario = b.scenario.Scenario.Until(b.horizon)
	}
	b.config.Edge = edgeOf(b.scenario.Scenario.Horizon)
	return nil
}

// killDaemon adds kills to the faults of the scenario, so that they are simulated too.
func (b *liveBench) killDaemon(at []time.Duration) {
	s := &b.scenario.Scenario
	s.Faults = slices.Clone(s.Faults)
	for _, t := range at {
		s.Faults = append(s.Faults, scenario.Fault{At: t, Kind: scenario.Restart})
	}
}

// edgeOf returns the time that is not counted at both ends of a run. It is that of simulations, so
// that the same requests are counted, or less where the run is too short to be simulated.
func edgeOf(horizon time.Duration) time.Duration {
	if horizon > 2*scenario.Edge {
		return scenario.Edge
	}
	return horizon / 8
}

// run runs the scenario without batch work and with each policy.
func (b *liveBench) run(ctx context.Context) ([]liveRun, error) {
	b.config.Role = []string{bench.RoleVariable + "=" + live.RunnerRole}
	b.config.Logf = b.logf
	alone, err := b.trial(ctx, "", nil)
	if err != nil {
		return nil, fmt.Errorf("without batch work: %w", err)
	}
	results := []liveRun{{Live: alone}}
	for _, policy := range b.policies {
		one, err := b.policy(ctx, policy)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", policy, err)
		}
		one.Loss = 100 * (alone.Attainment - one.Live.Attainment)
		one.Recoveries = recoveries(live.Faults(b.scenario.Scenario), one, alone)
		one.Predicted.dropTimelines()
		results = append(results, one)
	}
	return results, nil
}

func (b *liveBench) policy(ctx context.Context, text string) (liveRun, error) {
	result := liveRun{Policy: text}
	candidate, err := compare.Configuration{}.Candidate(text)
	if err != nil {
		return result, err
	}
	if result.Live, err = b.trial(ctx, text, b.daemonSettings(candidate)); err != nil {
		return result, err
	}
	if !b.simulate {
		return result, nil
	}
	setup := b.scenario.Setup
	setup.Policy = candidate.Policy
	metrics := &setup.Scenario.Metrics
	metrics.GatewayPeriod = max(b.config.Scrape, metrics.Period)
	result.Predicted, err = predict(ctx, setup)
	return result, err
}

func (b *liveBench) trial(
	ctx context.Context, policy string, settings []string,
) (live.Outcome, error) {
	dir, err := os.MkdirTemp(b.dir, "live-")
	if err != nil {
		return live.Outcome{}, err
	}
	defer os.RemoveAll(dir)
	b.logf("%v with %q", b.scenario.Scenario.Horizon, policy)
	c := b.config
	c.Dir, c.Settings = dir, settings
	return live.Run(ctx, b.scenario.Setup, c)
}

// daemonSettings are those that give the daemon's policy what the simulated one knows.
func (b *liveBench) daemonSettings(candidate compare.Candidate) []string {
	policy := candidate.Family
	all := []string{"flowcontrol.policy=" + policy}
	for _, s := range candidate.Settings {
		all = append(all, "flowcontrol."+policy+"."+s)
	}
	in := b.scenario.Scenario.Interactive
	if !in.SLOWithheld {
		all = append(all, "flowcontrol.slo.ttft="+in.SLO.TTFT.String(),
			"flowcontrol.slo.tpot="+in.SLO.TPOT.String())
	}
	if !b.scenario.Scenario.Pool.FactsWithheld {
		profile := b.scenario.Engine().Profile
		all = append(all, "flowcontrol.engine.kv_tokens="+strconv.Itoa(profile.KVTokens),
			"flowcontrol.engine.max_seqs="+strconv.Itoa(profile.MaxSeqs),
			"flowcontrol.engine.max_batched_tokens="+strconv.Itoa(profile.MaxBatchedTokens),
			"flowcontrol.engine.cost_model="+costModelText(profile.CostModel))
	}
	return append(all, b.settings...)
}

// costModelText writes a cost model as a setting.
func costModelText(m costmodel.Model) string {
	return fmt.Sprintf("{c0: %g, c1: %g, c2: %g, n0: %g, kv: %g, p1: %g, p2: %g}", m.C0, m.C1,
		m.C2, m.N0, m.KV, m.P1, m.P2)
}

// writeLiveTable prints a row for each policy, followed by what simulations say.
func writeLiveTable(out io.Writer, results []liveRun) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "policy\trequests\tattainment %\tloss\tTTFT p50, p99 ms\tTPOT p50, p99 ms\t"+
		"tokens M\tlines\tlines in flight\tdaemon cores\tsend error p99 ms\t"+
		"engines late p50, p99, most ms")
	for _, r := range results {
		o, p := r.Live, r.Predicted
		fmt.Fprintf(w, "%s\t%d\t%.2f\t%.2f\t%.0f, %.0f\t%.1f, %.1f\t%.3f\t%.0f\t%.1f\t%.2f\t"+
			"%.1f\t%.1f, %.1f, %.1f\n", nameOf(r),
			o.Requests, 100*o.Attainment, r.Loss, o.TTFT.P50, o.TTFT.P99, o.TPOT.P50, o.TPOT.P99,
			o.Tokens/1e6, o.Lines, o.MeanInFlight, o.DaemonCPU, o.SendError, o.Engines.LateP50,
			o.Engines.LateP99, o.Engines.LateMax)
		if len(p) > 0 {
			p.write(w)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, r := range results {
		if late, tooMuch := r.Live.Lateness(); tooMuch {
			fmt.Fprintf(out, "warning: %s: engines ended iterations %.1f ms late at the 99th "+
				"percentile, %.0f %% of the mean iteration: the machine is too slow or too busy "+
				"for times of this run to say much; repeat it on an idle one, or with fewer "+
				"replicas\n", nameOf(r), r.Live.Engines.LateP99, 100*late)
		}
	}
	return nil
}

// nameOf names a run by its policy.
func nameOf(r liveRun) string { return cmp.Or(r.Policy, "no batch work") }
