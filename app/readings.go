package app

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/tidefill/tidefill/autoscale/kube"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/internal/filewatch"
	"github.com/tidefill/tidefill/telemetry"
)

// telemetryOf returns what is read of a configuration's runners and gateways. Metrics, and
// latencies in Prometheus, are read only if flow control, a recording or a pool that is scaled uses
// them. What runners say of themselves stops lines under every policy, so it is always read.
func telemetryOf(cfg config.Config) telemetry.Config {
	if cfg.FlowControl.UsesReadings() || cfg.Record != "" || len(cfg.Pools) > 0 {
		return cfg.Telemetry
	}
	read := cfg.Telemetry
	read.Every, read.Prometheus = 0, telemetry.Prometheus{}
	return read
}

// newReader builds the reader of runners and gateways. It returns nil if the process sends no
// lines.
func (a *App) newReader(cfg config.Config) (_ *telemetry.Reader, err error) {
	if !a.dispatches() {
		return nil, nil
	}
	deps := telemetry.Deps{
		Sources: a.kubernetes.sources(cfg),
		Logger:  a.log, Registerer: a.options.Registry,
		OnSample: func(s telemetry.Sample) {
			if s.State != nil {
				a.dispatcher.ObserveState(s.Runner, *s.State)
			}
			isRunner := s.Runner != "" && s.Reading != nil &&
				s.Reading.Source == flowcontrol.Metrics
			if isRunner && !a.ownPages.prefers(s.Runner, time.Now(), s.Cluster) {
				return
			}
			if s.Reading != nil {
				a.dispatcher.Observe(s.Runner, s.Model, s.Reading)
				a.scaling.observe(s.Runner, s.Reading)
				a.kubernetes.observe(s.Runner, s.Reading)
				a.recording.latencies(s)
			}
		},
	}
	if deps.Runners, err = a.readRunners(cfg); err != nil {
		return nil, err
	}
	return telemetry.New(telemetryOf(cfg), deps)
}

// readRunners lists the runners that are read by a configuration with those that were found.
func (a *App) readRunners(cfg config.Config) ([]telemetry.Runner, error) {
	runners, err := runnersOf(cfg)
	if err != nil {
		return nil, err
	}
	return append(runners, a.kubernetes.otherSides()...), nil
}

// runnersOf lists the upstreams of a configuration, and engines behind them, that are read.
func runnersOf(cfg config.Config) (runners []telemetry.Runner, err error) {
	for _, u := range cfg.SentUpstreams() {
		if u.Reserved || u.Queued && u.Metrics == "none" {
			// It shows neither metrics nor capabilities, or only its worker reaches it.
			continue
		}
		name, err := u.Runner()
		if err != nil {
			return nil, err
		}
		header, err := u.AskHeader()
		if err != nil {
			return nil, err
		}
		if u.IsGateway() {
			runners = append(runners, enginesOf(u, name)...)
			continue
		}
		runners = append(runners, telemetry.Runner{Name: name, Base: u.Base(),
			Metrics: u.MetricsURL(), Header: header})
	}
	return runners, nil
}

// prepareReader returns the function that has the readings of a changed configuration read. Runners
// that stay are read on; all are read anew only if something else of it has changed.
func (a *App) prepareReader(before, now config.Config) (func(context.Context), error) {
	if reflect.DeepEqual(telemetryOf(before), telemetryOf(now)) &&
		slices.Equal(withReadings(before), withReadings(now)) {
		runners, err := a.readRunners(now)
		if err != nil {
			return nil, err
		}
		return func(context.Context) {
			if reader := a.telemetry.Load(); reader != nil {
				reader.Follow(runners)
			}
		}, nil
	}
	reader, err := a.newReader(now)
	if err != nil {
		return nil, err
	}
	file := watched(now)
	return func(ctx context.Context) {
		a.signalsFile = file
		a.reloads.accept(&a.reloads.signals)
		a.replaceReader(ctx, reader)
	}, nil
}

// withReadings lists the pools of which metrics APIs are read.
func withReadings(cfg config.Config) []kube.Watched {
	return slices.DeleteFunc(watchedPools(cfg), func(p kube.Watched) bool {
		return !p.HasReadings()
	})
}

// watched returns the file of signals, to be watched from now on.
func watched(cfg config.Config) *filewatch.Files {
	f := filewatch.New(cfg.Telemetry.Signals)
	f.Changed() // the first call returns true
	return f
}

// replaceReader has another reader read.
func (a *App) replaceReader(ctx context.Context, reader *telemetry.Reader) {
	a.telemetry.Store(reader)
	select {
	case a.readers <- reader:
	case <-ctx.Done():
	}
}

// read runs the reader, and those that replace it, until ctx ends.
func (a *App) read(ctx context.Context) error {
	for reader := a.telemetry.Load(); ctx.Err() == nil; {
		reading, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() {
			if reader == nil {
				<-reading.Done()
				ended <- nil
				return
			}
			ended <- reader.Run(reading)
		}()
		next := reader
		select {
		case <-ctx.Done():
		case next = <-a.readers:
		}
		stop()
		if err := <-ended; err != nil {
			return err
		}
		reader = next
	}
	return nil
}

// enginesOf returns the engines behind a gateway, of which the gateway's name is given: those with
// a page of metrics, and those that Prometheus knows. Nothing else is read of a gateway, because
// each answer would be another engine's.
func enginesOf(u dispatch.Upstream, gateway string) (runners []telemetry.Runner) {
	for _, entry := range u.Engines {
		engine, err := dispatch.EngineName(entry)
		switch {
		case err != nil: // Validate has refused it
		case engine == "":
			runners = append(runners, telemetry.Runner{Name: gateway, Engines: entry})
		default:
			runners = append(runners, telemetry.Runner{
				Name: dispatch.EngineRunner(gateway, engine), Metrics: entry})
		}
	}
	return runners
}
