package simflags

import (
	"io"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/workload"
)

// Comparison holds the flags of a comparison of policies in scenario files.
type Comparison struct {
	Policies
	Baselines bool
	// Published are compared with by --baselines, besides those of the daemon. It is no flag.
	Published []compare.Published
	Seed      uint64
	Seeds     int
	Trace     string // file of interactive traffic
	Format    string // of the trace
	Out       string // directory of the report
	JSON      bool
	Events    bool
}

// Register adds the flags.
func (f *Comparison) Register(flags *pflag.FlagSet) {
	f.Policies.Register(flags)
	flags.BoolVar(&f.Baselines, "baselines", false,
		"compare with published policies, each with its published and with its best settings")
	flags.Uint64Var(&f.Seed, "seed", 1, "the first `seed` of everything random")
	flags.IntVar(&f.Seeds, "seeds", 1,
		"run this `number` of seeds, from --seed on, and report mean and worst")
	flags.StringVar(&f.Trace, "trace", "",
		"read interactive traffic from this `FILE` instead of the scenario's")
	flags.StringVar(&f.Format, "format", "", "the trace's `format`: azure, mooncake or csv")
	flags.StringVar(&f.Out, "out", "",
		"write report.html and result.json into this `DIR`, and keep finished runs there, so that "+
			"a command that was stopped continues when it is repeated")
	flags.BoolVar(&f.JSON, "json", false, "print the content of result.json")
	flags.BoolVar(&f.Events, "events", false,
		"write every decision of the first policy with the first seed into events.log; needs --out")
}

// Open checks the flags, reads the scenarios and returns the comparison to run. Log takes progress.
func (f *Comparison) Open(files []string, log io.Writer) (*compare.Comparison, error) {
	switch {
	case f.Seeds < 1 || f.Seeds > 1000:
		return nil, compare.RequestErrorf("--seeds is %d, want 1 to 1000", f.Seeds)
	case (f.Trace == "") != (f.Format == ""):
		return nil, compare.RequestErrorf("--trace and --format go together; give both")
	case f.Format != "" && !slices.Contains(workload.Formats, workload.Format(f.Format)):
		return nil, compare.RequestErrorf("--format is %q, want one of %q", f.Format,
			workload.Formats)
	case f.Events && f.Out == "":
		return nil, compare.RequestErrorf("--events needs --out DIR, where events.log goes")
	}
	candidates, err := f.candidates()
	if err != nil {
		return nil, err
	}
	scenarios, err := compare.OpenScenarios(files, compare.Trace{File: f.Trace,
		Format: workload.Format(f.Format)})
	if err != nil {
		return nil, err
	}
	c := &compare.Comparison{Scenarios: scenarios, Candidates: candidates,
		Timelines: f.Out != "", Log: log}
	if f.Events {
		c.Events = f.Out
	}
	if f.Out != "" {
		if c.Runs, err = compare.OpenRuns(filepath.Join(f.Out, "runs")); err != nil {
			return nil, err
		}
	}
	for i := range f.Seeds {
		c.Seeds = append(c.Seeds, f.Seed+uint64(i))
	}
	return c, nil
}

// candidates returns the policies to compare: those of --policy, then the baselines.
func (f *Comparison) candidates() ([]compare.Candidate, error) {
	all, err := f.Candidates()
	if err != nil || !f.Baselines {
		return all, err
	}
	cfg, err := f.Configuration()
	if err != nil {
		return nil, err
	}
	return cfg.Baselines(all, f.names()[0], f.Published...)
}

// Moment reads the time from the beginning of a run that --explain asks for.
func Moment(text string) (time.Duration, error) {
	moment, err := config.ParseDuration(text)
	if err != nil || moment < 0 {
		return 0, compare.RequestErrorf("--explain is %q; write a time from the beginning, such "+
			"as 20m or 90s", text)
	}
	return moment, nil
}
