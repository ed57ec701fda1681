package app

import "github.com/tidefill/tidefill/telemetry"

// newProbe builds the reader of runners' metrics for flow control and the recording. It returns nil
// if neither uses readings.
func (a *App) newProbe() (*telemetry.Probe, error) {
	if !a.cfg.FlowControl.UsesReadings() && a.recording == nil {
		return nil, nil
	}
	deps := telemetry.Deps{
		SLO: a.cfg.FlowControl.SLO, Logger: a.log, Registerer: a.options.Registry,
		Tell: func(l telemetry.Look) {
			a.dispatcher.Read(l.Runner, l.Model, l.Reading)
			a.recording.latencies(l)
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
		deps.Runners = append(deps.Runners, telemetry.Runner{Name: name, Base: u.Base(),
			Metrics: u.MetricsURL(), Header: header})
	}
	return telemetry.New(a.cfg.Readings, deps)
}
