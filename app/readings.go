package app

import "github.com/tidefill/tidefill/telemetry"

// newReader builds the reader of runners' metrics for flow control and the recording. It returns
// nil if neither uses readings.
func (a *App) newReader() (*telemetry.Reader, error) {
	if !a.cfg.FlowControl.UsesReadings() && a.recording == nil {
		return nil, nil
	}
	deps := telemetry.Deps{
		SLO: a.cfg.FlowControl.SLO, Logger: a.log, Registerer: a.options.Registry,
		OnSample: func(s telemetry.Sample) {
			a.dispatcher.Observe(s.Runner, s.Model, s.Reading)
			a.recording.latencies(s)
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
	return telemetry.New(a.cfg.Telemetry, deps)
}
