package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	days "github.com/tidefill/tidefill/internal/recording"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/fit"
	"github.com/tidefill/tidefill/simulator/fit/profile"
	"github.com/tidefill/tidefill/simulator/replay"
	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

// comparison holds the simulator against recorded days.
type comparison struct {
	Recordings []string         `json:"recordings"`
	Seconds    float64          `json:"seconds"`
	Runners    int              `json:"runners"`
	Policy     string           `json:"policy"`
	Profile    string           `json:"profile"`
	Calibrated bool             `json:"calibrated"`
	Seed       uint64           `json:"seed"`
	Notes      []string         `json:"notes,omitempty"`
	Figures    []comparedFigure `json:"figures"`
}

// comparedFigure is a measure of both days; null where one of them doesn't tell.
type comparedFigure struct {
	Name      string   `json:"name"`
	Unit      string   `json:"unit,omitempty"`
	Recorded  *float64 `json:"recorded"`
	Simulated *float64 `json:"simulated"`
	// Error is (simulated - recorded) / recorded.
	Error *float64 `json:"error"`
}

// compare replays a recording and tells how far the simulated day is from the recorded one.
func (s *simulation) compare(ctx context.Context, scenarios []string, out, stderr io.Writer) error {
	if len(scenarios) > 1 {
		return usageFault("--compare takes the pool from one scenario at most, there are %d",
			len(scenarios))
	}
	given, err := s.settings.parse()
	if err != nil {
		return err
	}
	var b replay.Builder
	var fitted fit.RecordingReader
	header, err := readDays(s.recordings, func(e days.Entry) { b.Add(e); fitted.Add(e) })
	if err != nil {
		return err
	}
	if err := b.Check(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(s.recordings, ", "), err)
	}
	asked := header.Policy
	if len(s.policies) > 0 {
		asked = s.policies[0]
	}
	acting, err := configured{s.config, given}.named(asked)
	if err != nil {
		return err
	}
	at := story{}
	if len(scenarios) == 1 {
		if at, err = openStory(scenarios[0], recording{}); err != nil {
			return err
		}
	} else {
		at.Scenario = scenario.Default()
	}
	c := comparison{Recordings: s.recordings, Seconds: b.Length().Seconds(), Runners: b.Runners(),
		Policy: acting.name, Seed: s.seed}
	if err := c.pool(s, &at, &fitted, len(scenarios) == 1); err != nil {
		return err
	}
	if err := c.lay(&b, header, &at, workload.Seed(s.seed)); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(s.recordings, ", "), err)
	}
	setup := at.on(s.seed, acting.policy)
	ttft, tpot := b.Summary.Edges()
	told := newRetold(ttft, tpot)
	setup.Outputs.Recorder = told
	progress := newTally(stderr, setup.Scenario.Horizon.Hours())
	defer progress.stop()
	if _, err := simulator.RunAgainst(simulator.NoBatch{}, setup,
		progress.of(ctx, &at, acting.name)); err != nil {
		return err
	}
	progress.stop()
	c.figures(&b.Summary, &told.day)
	if s.json {
		return printJSON(out, c)
	}
	return c.text(out)
}

// readDays reads recordings one after the other.
func readDays(files []string, fn func(days.Entry)) (header days.Header, err error) {
	last := 0.0
	for i, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			return header, err
		}
		h, err := days.Read(name, bytes.NewReader(content), func(e days.Entry) error {
			if e.At < last {
				return fmt.Errorf(
					"t is %v, before the end of the file before; give the oldest first", e.At)
			}
			last = e.At
			fn(e)
			return nil
		})
		if err != nil {
			return header, err
		}
		if i > 0 && !h.Began.Equal(header.Began) {
			return header, fmt.Errorf(
				"%s began at %s, %s at %s: they are of different starts of the daemon; compare them one by one",
				files[0], header.Began.Format(time.RFC3339), name, h.Began.Format(time.RFC3339))
		}
		header = h
	}
	return header, nil
}

// pool chooses the engine: what --profile names, or the scenario has, or the recording itself
// gives.
func (c *comparison) pool(
	s *simulation, at *story, fitted *fit.RecordingReader, hasScenario bool,
) (err error) {
	switch {
	case s.profile != "":
		if at.profile, err = profileAt(s.profile); err != nil {
			return fmt.Errorf("--profile: %w", err)
		}
		at.Scenario.Pool.Profile = s.profile
	case !hasScenario:
		obs, err := fitted.Observations()
		if err != nil {
			return fmt.Errorf("no --profile is given, and none can be fitted: %w", err)
		}
		result, err := fit.Fit(obs, fit.Options{Resamples: -1})
		if err != nil {
			return fmt.Errorf("no --profile is given, and none can be fitted: %w", err)
		}
		obs.MaxSeqs, obs.MaxBatch = vllmSeqs, vllmBatch
		at.profile = profile.Of("the recording's own", result, obs, nil, engine.Profile{}, 0, nil)
		at.Scenario.Pool.Profile = at.profile.Name
		c.Notes = append(c.Notes, fmt.Sprintf(
			"the law is fitted to the recording itself; %d sequences and %d tokens an iteration are vLLM's defaults: give --profile if the engines' differ", vllmSeqs, vllmBatch))
	}
	at.Profile, err = at.profile.Profile()
	c.Profile, c.Calibrated = at.profile.Name, at.profile.Measured
	return err
}

// vllmSeqs and vllmBatch are what vLLM runs at once by default.
const (
	vllmSeqs  = 256
	vllmBatch = 2048
)

// lay puts the recorded day into the story.
func (c *comparison) lay(
	b *replay.Builder, header days.Header, at *story, seed workload.Seed,
) error {
	traffic, err := b.Traffic(seed)
	if err != nil {
		return err
	}
	sc := &at.Scenario
	sc.Name, sc.Horizon, sc.Jobs, sc.JobStream.PerHour, sc.Faults = "the recorded day", b.Length(),
		nil, 0, nil
	sc.Pool.Replicas, sc.Pool.Max = b.Runners(), 0
	slo := sc.Interactive.SLO
	slo.TTFT, slo.TPOT = time.Duration(header.TTFT*float64(time.Second)),
		time.Duration(header.TPOT*float64(time.Second))
	sc.Interactive = scenario.Interactive{Generator: scenario.None, SLO: slo}
	if traffic != nil {
		sc.Interactive.Generator, sc.Interactive.Trace, sc.Interactive.Format = "", traffic.Name(),
			workload.CSV
		at.Trace, sc.Horizon = traffic, min(sc.Horizon, traffic.Span())
	}
	at.ExtraJobs = b.Jobs()
	c.Notes = append(
		c.Notes, "interactive requests are as many as the engines counted beyond our own lines, in each ten seconds; their times within it and the spread of their sizes are drawn")
	if len(at.ExtraJobs) == 0 {
		c.Notes = append(c.Notes, "no batch work was recorded")
	}
	return at.Check()
}

// retold records the simulated day as the daemon recorded the real one.
type retold struct {
	*days.Recorder
	day        days.Day
	ttft, tpot []float64 // edges
	runners    map[string]*[2]*days.Latency
	users      [2]*days.Latency
	told       time.Time
}

func newRetold(ttft, tpot []float64) *retold {
	r := &retold{ttft: ttft, tpot: tpot, runners: map[string]*[2]*days.Latency{}}
	r.users = [2]*days.Latency{days.NewLatency(ttft), days.NewLatency(tpot)}
	r.Recorder = days.NewRecorder(simulator.Epoch(), r)
	return r
}

// Put implements days.Sink.
func (r *retold) Put(e days.Entry) { r.day.Add(e) }

// Step tells of histograms as often as a daemon does.
func (r *retold) Step(now time.Time, ev plan.Event, did plan.Actions) {
	r.Recorder.Step(now, ev, did)
	if up, is := ev.(plan.RunnerUp); is && r.runners[up.Runner] == nil {
		r.runners[up.Runner] = &[2]*days.Latency{days.NewLatency(r.ttft), days.NewLatency(r.tpot)}
		r.latencies(now, up.Runner, r.runners[up.Runner])
	}
	if r.told.IsZero() || now.Sub(r.told) >= 10*time.Second {
		r.told = now
		r.latencies(now, "", &r.users)
		for _, runner := range sortedKeys(r.runners) {
			r.latencies(now, runner, r.runners[runner])
		}
	}
}

func (r *retold) latencies(now time.Time, runner string, of *[2]*days.Latency) {
	r.Recorder.Latencies(now, runner, "", of[0].Buckets(), of[1].Buckets())
}

// Served implements simulator.Recorder.
func (r *retold) Served(_ time.Time, s simulator.ServedRequest) {
	count := func(of *[2]*days.Latency) {
		of[0].Observe(s.TTFT.Seconds())
		if s.TPOT > 0 {
			of[1].Observe(s.TPOT.Seconds())
		}
	}
	if of := r.runners[s.Runner]; of != nil {
		count(of)
	}
	if !s.Batch {
		count(&r.users)
	}
}

var _ interface {
	simulator.Recorder
	days.Sink
} = (*retold)(nil)

// figures lays the days side by side.
func (c *comparison) figures(recorded, simulated *days.Day) {
	known := func(v float64) *float64 {
		if math.IsNaN(v) {
			return nil
		}
		return &v
	}
	other := simulated.Figures()
	for i, f := range recorded.Figures() {
		row := comparedFigure{Name: f.Name, Unit: f.Unit, Recorded: known(f.Value),
			Simulated: known(other[i].Value)}
		if f.Value > 0 {
			row.Error = known(other[i].Value/f.Value - 1)
		}
		c.Figures = append(c.Figures, row)
	}
}

func (c *comparison) text(out io.Writer) error {
	calibrated := "not calibrated"
	if c.Calibrated {
		calibrated = "fitted"
	}
	fmt.Fprintf(out, "%s of %s, policy %s, profile %s (%s), seed %d\n\n",
		time.Duration(c.Seconds*float64(time.Second)).Round(time.Second),
		counted(c.Runners, "runner"), c.Policy, c.Profile, calibrated, c.Seed)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\trecorded\tsimulated\terror\t")
	for _, f := range c.Figures {
		if f.Recorded == nil && f.Simulated == nil {
			continue
		}
		value := func(v *float64) string {
			if v == nil {
				return "-"
			}
			return strings.TrimSpace(fmt.Sprintf("%.4g %s", *v, f.Unit))
		}
		off := "-"
		if f.Error != nil {
			off = fmt.Sprintf("%+.1f %%", 100**f.Error)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t\n", f.Name, value(f.Recorded), value(f.Simulated), off)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, note := range c.Notes {
		if _, err := fmt.Fprintf(out, "\nnote: %s\n", note); err != nil {
			return err
		}
	}
	return nil
}
