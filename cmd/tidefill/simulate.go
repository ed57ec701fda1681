package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/oracle"
	"github.com/tidefill/tidefill/simulator/report"
	"github.com/tidefill/tidefill/simulator/workload"
)

// simulation is one run of the command.
type simulation struct {
	settings  settings
	config    string
	policies  []string
	baselines bool
	oracles   bool
	searches  int
	shelf     string
	seed      uint64
	seeds     int
	trace     string
	format    string
	out       string
	json      bool
	events    bool
	explain   string

	recordings []string // to compare with
	profile    string   // of the pool they are of
}

func simulateCommand() *cobra.Command {
	var s simulation
	cmd := &cobra.Command{
		Use:   "simulate SCENARIO.yaml... | --compare RECORDING [SCENARIO.yaml]",
		Short: "Try policies on a simulated pool, faster than real time",
		Long: `Run the daemon's own scheduling, flow control and scaling against a model of the pool, and report what they would do to
interactive users and to batches. Each scenario is told without batch work and with that of each policy, with the same arrivals;
the difference is what batch work costs. docs/simulator.md has the keys of a scenario, what the figures mean and what is not modelled.

With --compare a day that serve --record has written is told again, with the policy that was in force, and each measure of the
simulated day is held against the recorded one. The pool is that of the scenario, if one is given; else its engines' law is --profile, or
is fitted to the recording.

The same scenarios, configuration and seeds give the same bytes on standard output. Progress goes to standard error.`,
		Example: `  tidefill simulate simulator/scenarios/s1-steady.yaml
  tidefill simulate s1.yaml --policy headroom --policy fixed,per_runner=16 --seeds 5 --out report
  tidefill simulate s1.yaml --config tidefill.yaml --baselines --oracles --json
  tidefill simulate s1.yaml --explain 20m
  tidefill simulate --compare day.jsonl --profile ours.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(s.recordings) > 0 {
				return nil
			}
			return cobra.MinimumNArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(s.recordings) > 0 {
				return s.compare(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
			}
			return s.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&s.policies, "policy", nil,
		"try this flow control `policy`, with settings of its own after commas (fixed,per_runner=16); repeat it to compare (default: the configuration's)")
	flags.StringVar(&s.config, "config", "",
		"take the policies' settings from this `file`, as serve does (default: the daemon's defaults)")
	flags.BoolVar(&s.baselines, "baselines", false,
		"compare with published policies, each with its own and with its best settings")
	flags.BoolVar(&s.oracles, "oracles", false, "find out how well anyone could have done")
	flags.IntVar(&s.searches, "oracle-runs", 60,
		"how many `times` an oracle may tell a story of an hour to find its best; of a longer one fewer")
	flags.StringVar(&s.shelf, "oracle-results", "",
		"keep what oracles find in this `DIR`, and search no more for what is found there and still holds (default: the folder oracles in --out)")
	flags.Uint64Var(&s.seed, "seed", 1, "draw everything random from this `number`")
	flags.IntVar(&s.seeds, "seeds", 1,
		"run this `number` of seeds, from --seed on, and tell mean and worst")
	flags.StringVar(&s.trace, "trace", "",
		"take interactive traffic from this `FILE` instead of the scenario's")
	flags.StringVar(&s.format, "format", "", "the trace's `format`: azure, mooncake or csv")
	flags.StringVar(&s.out, "out", "", "write report.html and result.json into this `DIR`")
	flags.BoolVar(&s.json, "json", false, "print what result.json holds")
	flags.BoolVar(&s.events, "events", false,
		"write every decision of the first policy on the first seed into events.log; needs --out")
	flags.StringVar(&s.explain, "explain", "",
		"print why the first policy decided as it did around this `time` of the first seed, such as 20m, and nothing else")
	flags.StringArrayVar(&s.recordings, "compare", nil,
		"tell this recorded `FILE` again and print how far off the simulation is; repeat it for files of one start, the oldest first")
	flags.StringVar(&s.profile, "profile", "",
		"with --compare: a bundled profile or `FILE` of the recorded engines")
	s.settings.register(cmd)
	return cmd
}

func (s *simulation) run(ctx context.Context, files []string, out, stderr io.Writer) error {
	r, err := s.race(files, stderr)
	if err != nil {
		return err
	}
	var logs eventLogs
	var explained []*bytes.Buffer
	moment, err := s.moment()
	if err != nil {
		return err
	}
	first := func(c contestant, seed uint64) bool {
		return c.name == r.field[0].name && seed == r.seeds[0]
	}
	if s.events {
		if logs, err = s.openEvents(r.stories); err != nil {
			return err
		}
	}
	if s.explain != "" {
		r.field, r.seeds = r.field[:1], r.seeds[:1]
		for range r.stories {
			explained = append(explained, &bytes.Buffer{})
		}
	}
	r.watch = func(at *story, c contestant, seed uint64) simulator.Outputs {
		var w simulator.Outputs
		w.Timeline = s.out != "" && !c.baseline && seed == r.seeds[0]
		if !first(c, seed) {
			return w
		}
		i := slices.IndexFunc(r.stories, func(other story) bool { return other.file == at.file })
		if s.events {
			w.Events = logs[i]
		}
		if s.explain != "" {
			w.Explain, w.Moment = explained[i], moment
		}
		return w
	}
	told, err := r.run(ctx)
	if err = errors.Join(err, logs.close()); err != nil {
		return err
	}
	if s.explain != "" {
		return writeExplained(out, r.stories, moment, explained)
	}
	if err := r.spread(ctx, told.Scenarios); err != nil {
		return err
	}
	told.Judge()
	if s.out != "" {
		bounds := func(story, seed int) []oracle.Bound {
			return told.Scenarios[story].Seeds[seed].Oracles
		}
		if err := errors.Join(writeOut(s.out, &told), r.writeReplays(filepath.Join(s.out, "replay"),
			bounds)); err != nil {
			return err
		}
	}
	if s.json {
		return printJSON(out, told)
	}
	return told.Text(out)
}

// race reads all that was asked for.
func (s *simulation) race(files []string, stderr io.Writer) (*race, error) {
	switch {
	case s.seeds < 1 || s.seeds > 1000:
		return nil, usageFault("--seeds is %d, want 1 to 1000", s.seeds)
	case s.searches < 1:
		return nil, usageFault("--oracle-runs is %d, want at least 1", s.searches)
	case (s.trace == "") != (s.format == ""):
		return nil, usageFault("--trace and --format go together; give both")
	case s.format != "" && !slices.Contains(workload.Formats, workload.Format(s.format)):
		return nil, usageFault("--format is %q, want one of %q", s.format, workload.Formats)
	case s.events && s.out == "":
		return nil, usageFault("--events needs --out DIR, where events.log goes")
	}
	given, err := s.settings.parse()
	if err != nil {
		return nil, err
	}
	field, err := configured{s.config, given}.field(s.policies, s.baselines)
	if err != nil {
		return nil, err
	}
	stories, err := openStories(files, recording{s.trace, workload.Format(s.format)})
	if err != nil {
		return nil, err
	}
	r := &race{stories: stories, field: field, oracles: s.oracles, oracleRuns: s.searches,
		stderr: stderr}
	switch {
	case s.shelf != "":
		r.shelf = &shelf{s.shelf, stderr}
	case s.out != "":
		r.shelf = &shelf{filepath.Join(s.out, "oracles"), stderr}
	}
	for i := range s.seeds {
		r.seeds = append(r.seeds, s.seed+uint64(i))
	}
	return r, nil
}

func (s *simulation) moment() (time.Duration, error) {
	if s.explain == "" {
		return 0, nil
	}
	moment, err := config.ParseDuration(s.explain)
	if err != nil || moment < 0 {
		return 0, usageFault("--explain is %q; write a time from the beginning, such as 20m or 90s",
			s.explain)
	}
	return moment, nil
}

// writeExplained prints why decisions fell, story by story.
func writeExplained(
	out io.Writer, stories []story, moment time.Duration, explained []*bytes.Buffer,
) error {
	for i, s := range stories {
		text := explained[i].String()
		if text == "" {
			text = fmt.Sprintf("nothing was decided from %s on\n", moment)
		}
		if _, err := fmt.Fprintf(out, "%s\n%s", s.Scenario.Name, text); err != nil {
			return err
		}
	}
	return nil
}

// writeOut writes the report's files into a folder, which is made if it is not there.
func writeOut(dir string, told *report.Report) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	var page, figures bytes.Buffer
	if err := told.HTML(&page); err != nil {
		return fmt.Errorf("draw report: %w", err)
	}
	if err := printJSON(&figures, told); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "report.html"), page.Bytes(), 0o666),
		os.WriteFile(filepath.Join(dir, "result.json"), figures.Bytes(), 0o666),
	)
}

// eventLogs are files of decisions, one a story.
type eventLogs []*eventFile

func (s *simulation) openEvents(stories []story) (eventLogs, error) {
	if err := os.MkdirAll(s.out, 0o777); err != nil {
		return nil, err
	}
	var all eventLogs
	for _, at := range stories {
		name := "events.log"
		if len(stories) > 1 {
			name = strings.TrimSuffix(filepath.Base(at.file), ".yaml") + ".events.log"
		}
		f, err := newEventFile(filepath.Join(s.out, name))
		if err != nil {
			return nil, errors.Join(err, all.close())
		}
		all = append(all, f)
	}
	return all, nil
}

func (l eventLogs) close() error {
	var faults []error
	for _, f := range l {
		faults = append(faults, f.close())
	}
	return errors.Join(faults...)
}
