package app

import (
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/telemetry"
)

// newReader builds the reader of runners' metrics for flow control and the recording. It returns
// nil if neither uses readings.
func (a *App) newReader() (*telemetry.Reader, error) {
	if !a.cfg.FlowControl.UsesReadings() && a.recording == nil {
		return nil, nil
	}
	deps := telemetry.Deps{
		SLO: a.cfg.FlowControl.SLO, Logger: a.log, Registerer: a.options.Registry,
		OnSample: func(s telemetry.Sample) {
			if s.State != nil {
				a.dispatcher.ObserveState(s.Runner, dispatch.RunnerState(*s.State))
			}
			if s.Reading != nil {
				a.dispatcher.Observe(s.Runner, s.Model, s.Reading)
				a.recording.latencies(s)
			}
		},
	}
	for _, u := range a.cfg.Upstreams {
		name, err := u.Runner()
		if err != nil {
			return nil, err
		}
		header, err := u.AskHeader()
		if err != nil {
			return nil, err
		}
		if u.IsGateway() {
			deps.Runners = append(deps.Runners, enginesOf(u, name)...)
			continue
		}
		deps.Runners = append(deps.Runners, telemetry.Runner{Name: name, Base: u.Base(),
			Metrics: u.MetricsURL(), Header: header})
	}
	return telemetry.New(a.cfg.Telemetry, deps)
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
