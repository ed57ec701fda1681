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
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/search"
)

// tuning is one run of the command.
type tuning struct {
	settings settings
	config   string
	params   []string
	budget   int
	seeds    int
	seed     uint64
	out      string
}

func tuneCommand() *cobra.Command {
	var t tuning
	cmd := &cobra.Command{
		Use:   "tune SCENARIO.yaml... --param KEY=LOW:HIGH",
		Short: "Search the parameters of a policy by simulation",
		Long: `Try values of configuration keys on all scenarios and several seeds, and write a patch of the configuration if what is best there is
better on seeds that the search never saw. What counts is the harvest against that of the configuration as it is, less for
interactive loss beyond the scenario's goal, missed deadlines and further GPU hours; the geometric mean over scenarios.
docs/simulator.md says how the search goes.`,
		Example: `  tidefill tune simulator/scenarios/s1-steady.yaml simulator/scenarios/s5-burst.yaml --set flowcontrol.policy=headroom \
    --param flowcontrol.headroom.theta.most=0.7:1.1 --param flowcontrol.headroom.pace.gain=0.02:0.4:log --out tuned`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&t.params, "param", nil,
		"search `KEY=LOW:HIGH`; durations have units, whole numbers stay whole, :log at the end spreads by ratio; repeat it for more")
	flags.IntVar(&t.budget, "budget", 200,
		"how `many` times all scenarios may be told, each with one setting on one seed")
	flags.IntVar(&t.seeds, "seeds", 3,
		"search on this `number` of seeds, at least 2; as many others confirm")
	flags.Uint64Var(&t.seed, "seed", 1, "the first of them")
	flags.StringVar(&t.config, "config", "",
		"begin with the configuration of this `file` (default: the daemon's defaults)")
	flags.StringVar(&t.out, "out", "", "write patch.yaml with the evidence into this `DIR`")
	t.settings.register(cmd)
	return cmd
}

func (t *tuning) run(ctx context.Context, files []string, out, stderr io.Writer) error {
	h, err := t.prepare(files)
	if err != nil {
		return err
	}
	// The search may end early, when no step helps any more.
	hours := 0.0
	for _, s := range h.stories {
		hours += s.Scenario.Horizon.Hours() * float64(t.budget+5*t.seeds)
	}
	h.progress = newTally(stderr, hours)
	defer h.progress.stop()
	if err := h.begin(ctx); err != nil {
		return err
	}
	best, err := search.Maximize(h.space(), h.start(), search.Options{Budget: t.budget,
		Seeds: t.seeds}, func(points [][]float64, seeds int) ([]float64, error) {
		return h.evaluate(ctx, points, h.searched[:seeds])
	})
	if err != nil {
		return err
	}
	found, err := h.confirm(ctx, best)
	if err != nil {
		return err
	}
	h.progress.stop()
	var text bytes.Buffer
	if err := found.write(&text, h); err != nil {
		return err
	}
	if t.out != "" && found.better() {
		if err := os.MkdirAll(t.out, 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(t.out, "patch.yaml"), text.Bytes(),
			0o666); err != nil {
			return err
		}
	}
	_, err = out.Write(text.Bytes())
	return err
}

// hunt is a search under way.
type hunt struct {
	stories  []story
	params   []param
	config   configured
	searched []uint64 // seeds of the search
	held     []uint64 // and those that confirm
	progress *tally

	quiet  map[day]simulator.NoBatch
	before map[day]simulator.Result // with the configuration as it is
}

// day is a story on a seed.
type day struct {
	story int
	seed  uint64
}

func (t *tuning) prepare(files []string) (*hunt, error) {
	switch {
	case len(t.params) == 0:
		return nil, usageFault("nothing to search: give --param KEY=LOW:HIGH")
	case t.seeds < 2 || t.seeds > 100:
		return nil, usageFault("--seeds is %d, want 2 to 100: what is good on one seed may be luck",
			t.seeds)
	case t.budget < 4*t.seeds:
		return nil, usageFault("--budget is %d, want at least four times --seeds", t.budget)
	}
	given, err := t.settings.parse()
	if err != nil {
		return nil, err
	}
	h := &hunt{config: configured{t.config, given}, quiet: map[day]simulator.NoBatch{},
		before: map[day]simulator.Result{}}
	for i := range t.seeds {
		h.searched = append(h.searched, t.seed+uint64(i))
		h.held = append(h.held, t.seed+uint64(t.seeds+i))
	}
	var faults []error
	for _, text := range t.params {
		p, err := h.config.param(text)
		if err != nil {
			faults = append(faults, err)
		}
		if slices.ContainsFunc(h.params, func(other param) bool { return other.key == p.key }) {
			faults = append(faults, usageFault("--param %s is given twice", p.key))
		}
		h.params = append(h.params, p)
	}
	h.stories, err = openStories(files, recording{})
	return h, errors.Join(append(faults, err)...)
}

func (h *hunt) space() []search.Dimension {
	var all []search.Dimension
	for _, p := range h.params {
		all = append(all, p.Dimension)
	}
	return all
}

func (h *hunt) start() []float64 {
	var all []float64
	for _, p := range h.params {
		all = append(all, p.start)
	}
	return all
}

// policy is the configuration with values of the parameters.
func (h *hunt) policy(values []float64) (simulator.Policy, error) {
	var more []string
	for i, v := range values {
		more = append(more, h.params[i].key+"="+h.params[i].text(v))
	}
	cfg, err := h.config.knowing(more)
	if err != nil {
		return simulator.Policy{}, fmt.Errorf("a value that --param asks for is refused: %w", err)
	}
	return policyOf(cfg), nil
}

// begin tells all days without batch work, and with the configuration as it is.
func (h *hunt) begin(ctx context.Context) error {
	cfg, err := h.config.knowing(nil)
	if err != nil {
		return err
	}
	policy := policyOf(cfg)
	r := race{stories: h.stories, seeds: slices.Concat(h.searched, h.held),
		field: []contestant{{policy: policy}}}
	quiet, jobs := r.quietJobs(h.progress)
	if err := errors.Join(parallel(ctx, jobs), quiet.fault()); err != nil {
		return err
	}
	for i := range h.stories {
		for n, seed := range r.seeds {
			h.quiet[day{i, seed}] = quiet.days[i][n]
		}
	}
	h.before, err = h.tell(ctx, []simulator.Policy{policy}, r.seeds, func(int) string {
		return "as it is"
	})
	return err
}

// tell runs policies on days. With several, days of the k-th have k times a large number added to
// the story's.
func (h *hunt) tell(
	ctx context.Context, policies []simulator.Policy, seeds []uint64, name func(int) string,
) (map[day]simulator.Result, error) {
	n := len(h.stories)
	results := make([]simulator.Result, len(policies)*n*len(seeds))
	var jobs []func(context.Context) error
	for k, policy := range policies {
		for i := range h.stories {
			for m, seed := range seeds {
				jobs = append(jobs, func(ctx context.Context) error {
					s := &h.stories[i]
					result, err := simulator.RunAgainst(h.quiet[day{i, seed}], s.on(
						seed, policy), h.progress.of(ctx, s, name(k)))
					results[(k*n+i)*len(seeds)+m] = result
					return err
				})
			}
		}
	}
	if err := parallel(ctx, jobs); err != nil {
		return nil, err
	}
	told := map[day]simulator.Result{}
	for at, result := range results {
		told[day{at / len(seeds), seeds[at%len(seeds)]}] = result
	}
	return told, nil
}

// evaluate is the worth of each point on some seeds.
func (h *hunt) evaluate(
	ctx context.Context, points [][]float64, seeds []uint64,
) ([]float64, error) {
	var policies []simulator.Policy
	for _, values := range points {
		policy, err := h.policy(values)
		if err != nil {
			return nil, err
		}
		policies = append(policies, policy)
	}
	told, err := h.tell(ctx, policies, seeds, func(k int) string { return h.name(points[k]) })
	if err != nil {
		return nil, err
	}
	var worth []float64
	for k := range points {
		worth = append(worth, h.worth(seeds, func(d day) simulator.Result {
			return told[day{k*len(h.stories) + d.story, d.seed}]
		}))
	}
	return worth, nil
}

func (h *hunt) name(values []float64) string {
	var parts []string
	for i, v := range values {
		parts = append(parts, h.params[i].text(v))
	}
	return strings.Join(parts, " ")
}

// worth is the geometric mean over scenarios of the mean over seeds of what a day is worth.
func (h *hunt) worth(seeds []uint64, told func(day) simulator.Result) float64 {
	var means []float64
	for i := range h.stories {
		sum := 0.0
		for _, seed := range seeds {
			d := day{i, seed}
			sum += h.dayWorth(d, told(d))
		}
		means = append(means, sum/float64(len(seeds)))
	}
	return simulator.GeometricMean(means)
}

// dayWorth is the harvest as a share of that with the configuration as it is, scored as
// simulator.Score does with the scenario's own goal for the loss; times the share of deadlines met,
// and of the GPU hours needed as it is.
func (h *hunt) dayWorth(d day, r simulator.Result) float64 {
	before := h.before[d]
	allowed := h.stories[d.story].Scenario.Goals.Loss
	loss := r.Loss
	if allowed > 0 {
		loss += 1 - allowed // Score allows one point
	}
	worth := simulator.Score(float64(r.Batch.Useful), float64(max(1, before.Batch.Useful)), loss)
	worth *= float64(1+r.Batch.Met) / float64(1+r.Batch.Deadlines)
	if r.GPUHours > 0 && before.GPUHours > 0 {
		worth *= before.GPUHours / r.GPUHours
	}
	return worth
}

// confirm runs what was found on all seeds, those that the search has not seen too.
func (h *hunt) confirm(ctx context.Context, best search.Result) (finding, error) {
	policy, err := h.policy(best.Point)
	if err != nil {
		return finding{}, err
	}
	after, err := h.tell(ctx, []simulator.Policy{policy}, slices.Concat(h.searched, h.held),
		func(int) string { return "what was found" })
	v := finding{best: best, after: after}
	for _, seeds := range []struct {
		of  []uint64
		now *[2]float64
	}{{h.searched, &v.searched}, {h.held, &v.held}} {
		seeds.now[0] = h.worth(seeds.of, func(d day) simulator.Result { return h.before[d] })
		seeds.now[1] = h.worth(seeds.of, func(d day) simulator.Result { return after[d] })
	}
	return v, err
}

// finding is what came of a search: worth before and after, on seeds searched and on seeds held
// back.
type finding struct {
	best           search.Result
	after          map[day]simulator.Result
	searched, held [2]float64
}

func (v finding) better() bool { return v.held[1] > v.held[0] && v.searched[1] > v.searched[0] }

// write makes a configuration file of it, whose comments are the evidence.
func (v finding) write(out io.Writer, h *hunt) error {
	var evidence bytes.Buffer
	fmt.Fprintf(
		&evidence, "worth before and after: %.4f and %.4f on seeds %s, which were searched; %.4f and %.4f on seeds %s, which were not\n",
		v.searched[0], v.searched[1], numbers(h.searched), v.held[0], v.held[1], numbers(h.held))
	fmt.Fprintf(&evidence, "%s of all scenarios\n\n", counted(v.best.Spent, "trial"))
	w := tabwriter.NewWriter(&evidence, 0, 0, 2, ' ', 0)
	fmt.Fprintln(
		w, "SCENARIO\tSEED\tHARVEST, M\tAFTER\tLOSS, POINTS\tAFTER\tDEADLINES\tAFTER\tGPU HOURS\tAFTER")
	for i, s := range h.stories {
		for _, seed := range slices.Concat(h.searched, h.held) {
			d := day{i, seed}
			a, b := h.before[d], v.after[d]
			note := ""
			if slices.Contains(h.held, seed) {
				note = " (held back)"
			}
			fmt.Fprintf(w, "%s\t%d%s\t%.2f\t%.2f\t%.2f\t%.2f\t%d/%d\t%d/%d\t%.1f\t%.1f\n",
				s.Scenario.Name, seed, note,
				float64(a.Batch.Useful)/1e6, float64(b.Batch.Useful)/1e6, a.Loss, b.Loss,
				a.Batch.Met, a.Batch.Deadlines, b.Batch.Met, b.Batch.Deadlines, a.GPUHours,
				b.GPUHours)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if !v.better() {
		fmt.Fprintln(
			&evidence, "\nNothing was found that is better on the seeds held back too. Keep the configuration as it is.")
	}
	for line := range strings.Lines(evidence.String()) {
		fmt.Fprint(out, strings.TrimRight("# "+line, " \n")+"\n")
	}
	if !v.better() {
		return nil
	}
	text, err := h.patch(v.best.Point)
	if err == nil {
		_, err = out.Write(text)
	}
	return err
}

// patch is the keys as a configuration file has them.
func (h *hunt) patch(values []float64) ([]byte, error) {
	root := map[string]any{}
	for i, p := range h.params {
		at := root
		path := strings.Split(p.key, ".")
		for _, section := range path[:len(path)-1] {
			inner, there := at[section].(map[string]any)
			if !there {
				inner = map[string]any{}
				at[section] = inner
			}
			at = inner
		}
		var node yaml.Node
		if err := yaml.Unmarshal([]byte(p.text(values[i])), &node); err != nil {
			return nil, err
		}
		at[path[len(path)-1]] = node.Content[0]
	}
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	err := encoder.Encode(root)
	return b.Bytes(), err
}

func numbers(seeds []uint64) string {
	var parts []string
	for _, s := range seeds {
		parts = append(parts, strconv.FormatUint(s, 10))
	}
	return strings.Join(parts, ", ")
}

// param is a key of the configuration that is searched.
type param struct {
	search.Dimension
	key   string
	kind  paramKind
	start float64 // as the configuration has it, moved into the range
}

type paramKind uint8

const (
	aNumber paramKind = iota
	aWhole
	aDuration // in seconds
)

// param reads KEY=LOW:HIGH, with :log after it.
func (c configured) param(text string) (param, error) {
	key, span, ok := strings.Cut(text, "=")
	bounds := strings.Split(span, ":")
	p := param{key: strings.TrimSpace(key)}
	if len(bounds) == 3 && bounds[2] == "log" {
		p.Log = true
		bounds = bounds[:2]
	}
	if !ok || len(bounds) != 2 {
		return param{}, usageFault("--param %s: write KEY=LOW:HIGH, or KEY=LOW:HIGH:log", text)
	}
	low, lowKind, err1 := readBound(bounds[0])
	high, highKind, err2 := readBound(bounds[1])
	if err := errors.Join(err1, err2); err != nil {
		return param{}, usageFault("--param %s: %w", text, err)
	}
	if lowKind == aDuration != (highKind == aDuration) {
		return param{}, usageFault("--param %s: one bound is a duration and the other is not", text)
	}
	p.Low, p.High, p.kind = low, high, min(lowKind, highKind)
	if lowKind == aDuration {
		p.kind = aDuration
	}
	if !(p.High > p.Low) || p.Log && !(p.Low > 0) {
		return param{}, usageFault(
			"--param %s: the range must go up, and from above 0 if it is logarithmic", text)
	}
	// Both ends must be values that the configuration takes.
	for _, v := range []float64{p.Low, p.High} {
		if _, err := c.knowing([]string{p.key + "=" + p.text(v)}); err != nil {
			return param{}, fmt.Errorf("--param %s: %w", text, err)
		}
	}
	p.start, err1 = c.now(p.key)
	return p, err1
}

func readBound(text string) (float64, paramKind, error) {
	if n, err := strconv.Atoi(text); err == nil {
		return float64(n), aWhole, nil
	}
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		return v, aNumber, nil
	}
	d, err := config.ParseDuration(text)
	if err != nil {
		return 0, 0, fmt.Errorf("%q is neither a number nor a duration", text)
	}
	return d.Seconds(), aDuration, nil
}

// now is what the configuration has for a key.
func (c configured) now(key string) (float64, error) {
	cfg, err := c.knowing(nil)
	if err != nil {
		return 0, err
	}
	text, err := cfg.YAML()
	if err != nil {
		return 0, err
	}
	var root map[string]any
	if err := yaml.Unmarshal(text, &root); err != nil {
		return 0, err
	}
	var value any = root
	for part := range strings.SplitSeq(key, ".") {
		section, _ := value.(map[string]any)
		value = section[part]
	}
	v, _, err := readBound(fmt.Sprint(value))
	if err != nil {
		return 0, fmt.Errorf("%s is %v: %w", key, value, err)
	}
	return v, nil
}

// text is a value as the configuration takes it, with three digits: more would pretend to a
// precision that no search has.
func (p param) text(v float64) string {
	switch p.kind {
	case aWhole:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case aDuration:
		rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
		return config.FormatDuration(time.Duration(rounded * float64(time.Second)))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
