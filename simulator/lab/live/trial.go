package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

// Config is what a trial needs besides the scenario.
type Config struct {
	Tidefill   string   // path of the program
	Prometheus string   // path of the program
	Role       []string // environment that makes this program run ServeRunner
	Dir        string   // for all data
	// Scrape is the interval of Prometheus's scrapes of the gateway.
	Scrape time.Duration
	// Settings of the daemon, key=value. Nil: there is no batch work.
	Settings []string
	// Edge is the time at both ends that is not counted.
	Edge time.Duration
	// Backlog is the number of lines of a job without end, in files of FileLines.
	Backlog int
	Logf    func(format string, args ...any)
}

// FileLines is the number of lines of an input file.
const FileLines = 5000

// trial is one run of a scenario.
type trial struct {
	config Config
	setup  simulator.Setup
	start  time.Time

	runners    *runners
	pages      *pages
	gateway    *gateway
	prometheus *prometheusServer // nil: the gateway is not read, or there is no batch work
	relay      *relay            // before it
	daemon     *daemon           // nil: there is no batch work
	recorder   *recorder
	closers    []func()
}

// Run runs a scenario once.
func Run(ctx context.Context, setup simulator.Setup, config Config) (_ Outcome, err error) {
	t := &trial{config: config, setup: setup,
		recorder: &recorder{objective: setup.Scenario.Interactive.SLO}}
	defer func() {
		for i := len(t.closers) - 1; i >= 0; i-- {
			t.closers[i]()
		}
	}()
	if err := Check(setup); err != nil {
		return Outcome{}, err
	}
	if err := t.startProcesses(ctx); err != nil {
		return Outcome{}, err
	}
	jobs, err := t.upload(ctx)
	if err != nil {
		return Outcome{}, err
	}
	events, err := t.events()
	if err != nil {
		return Outcome{}, err
	}
	if err := t.play(ctx, jobs, events); err != nil {
		return Outcome{}, err
	}
	for i := range t.runners.process {
		if err := t.runners.readTiming(ctx, i); err != nil {
			return Outcome{}, err
		}
	}
	o := t.recorder.outcome(setup.Scenario.Horizon, config.Edge)
	o.Engines = t.runners.latest
	return o, nil
}

// Check reports what of a scenario can be simulated only.
func Check(setup simulator.Setup) error {
	s := setup.Scenario
	_, bundled := engine.ProfileNamed(s.Pool.Profile)
	switch {
	case !bundled:
		return fmt.Errorf("pool.profile is %s; only bundled profiles can be emulated",
			s.Pool.Profile)
	case s.Pool.Max > 0 || len(s.BatchPools) > 0:
		return errors.New("pools that scale and batch_pools can be simulated only")
	case s.Interactive.Users.Count > 0 || len(s.Interactive.Classes) > 0:
		return errors.New("closed loops and classes of traffic can be simulated only")
	case s.Pool.ShedAbove > 0:
		return errors.New("pool.shed_above can be simulated only; set it to 0")
	}
	for i, f := range s.Faults {
		if f.Forget {
			return fmt.Errorf("faults[%d].forget can be simulated only; remove it", i)
		}
	}
	for i, f := range s.Metrics.Faults {
		if err := canHappen(f, s.Metrics); err != nil {
			return fmt.Errorf("metrics.faults[%d]: %w", i, err)
		}
	}
	return nil
}

func (t *trial) onClose(do func()) { t.closers = append(t.closers, do) }

func (t *trial) startProcesses(ctx context.Context) (err error) {
	if t.runners, err = startRunners(ctx, t.setup, t.config.Role); err != nil {
		return err
	}
	t.onClose(t.runners.kill)
	if t.gateway, err = startGateway(t.setup.Scenario.Interactive.SLO); err != nil {
		return err
	}
	t.onClose(t.gateway.stop)
	if t.config.Settings == nil {
		return nil
	}
	if t.pages, err = startPages(t.runners); err != nil {
		return err
	}
	t.onClose(t.pages.stop)
	if t.setup.Scenario.Metrics.Gateway != scenario.GatewayOff {
		if err := t.startPrometheus(ctx); err != nil {
			return err
		}
	}
	return t.startDaemon(ctx)
}

func (t *trial) startPrometheus(ctx context.Context) (err error) {
	if t.prometheus, err = startPrometheus(ctx, t.config.Prometheus, t.config.Dir,
		t.gateway.address, t.config.Scrape); err != nil {
		return err
	}
	t.onClose(func() { t.prometheus.process.kill() })
	if t.relay, err = startRelay(t.prometheus.url()); err != nil {
		return err
	}
	t.onClose(t.relay.stop)
	return nil
}

func (t *trial) startDaemon(ctx context.Context) (err error) {
	settings := t.config.Settings
	if t.prometheus != nil {
		settings = append([]string{"telemetry.prometheus.url=" + t.relay.url()}, settings...)
	}
	config := "upstreams:\n"
	for i := range t.runners.process {
		config += fmt.Sprintf("- {url: %q, metrics: %q}\n", t.runners.url(i), t.pages.url(i))
	}
	file := filepath.Join(t.config.Dir, "tidefill.yaml")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return err
	}
	if t.daemon, err = startDaemon(ctx, t.config.Tidefill, file,
		filepath.Join(t.config.Dir, "data"), settings); err != nil {
		return err
	}
	t.onClose(func() { t.daemon.process.stop(5 * time.Second) })
	return nil
}

// submission is a batch that is created at a time.
type submission struct {
	at, window time.Duration
	file       string
}

// upload writes and uploads the lines of the scenario's jobs.
func (t *trial) upload(ctx context.Context) (all []submission, err error) {
	if t.daemon == nil {
		return nil, nil
	}
	jobs, err := t.setup.Jobs()
	if err != nil {
		return nil, err
	}
	for job, ok := jobs.Next(); ok; job, ok = jobs.Next() {
		made, err := t.uploadJob(ctx, job)
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", job.Name, err)
		}
		all = append(all, made...)
	}
	return all, nil
}

func (t *trial) uploadJob(ctx context.Context, job *workload.Job) (all []submission, err error) {
	lines := job.Lines
	if lines == workload.Backlog {
		lines = t.config.Backlog
	}
	path := filepath.Join(t.config.Dir, "input.jsonl")
	defer os.Remove(path)
	for from := 0; from < lines; from += FileLines {
		if err := writeLines(path, job, from, min(FileLines, lines-from)); err != nil {
			return nil, err
		}
		file, err := t.daemon.upload(ctx, path)
		if err != nil {
			return nil, err
		}
		all = append(all, submission{job.At, job.Window, file})
	}
	return all, nil
}

// play runs the scenario to its horizon.
func (t *trial) play(ctx context.Context, jobs []submission, events []event) error {
	stream, err := t.setup.Traffic()
	if err != nil {
		return err
	}
	router := newRouter(t.setup.Scenario.Pool, t.setup.Engine(), t.runners)
	t.start = time.Now().Add(100 * time.Millisecond)
	end := t.start.Add(t.setup.Scenario.Horizon)
	playing, stop := context.WithDeadline(ctx, end)
	defer stop()
	group, playing := errgroup.WithContext(playing)
	group.Go(func() error { router.watch(playing); return nil })
	group.Go(func() error {
		newUsers(router, t.gateway, t.recorder.request).play(playing, t.start, stream)
		return nil
	})
	group.Go(func() error { return t.submit(playing, jobs) })
	group.Go(func() error { return happen(playing, t.start, events, t.config.Logf) })
	group.Go(func() error { t.sample(playing); return nil })
	if err := group.Wait(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return ctx.Err()
}

func (t *trial) submit(ctx context.Context, jobs []submission) error {
	for _, j := range jobs {
		if !sleepUntil(ctx, t.start.Add(j.at)) {
			return nil
		}
		if err := t.daemon.submit(ctx, j.file, j.window); err != nil {
			return err
		}
	}
	return nil
}

// sample reads the daemon's metrics each second. A daemon that was killed is not read.
func (t *trial) sample(ctx context.Context) {
	if t.daemon == nil {
		return
	}
	for at := time.Duration(0); sleepUntil(ctx, t.start.Add(at)); at += time.Second {
		if s, err := t.daemon.read(ctx); err == nil {
			s.at = time.Since(t.start)
			t.recorder.state(s)
		}
	}
}
