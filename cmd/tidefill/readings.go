package main

import (
	"github.com/tidefill/tidefill/telemetry"
)

// newProbe builds what reads the world for flow control and the recording; nil where nobody heeds
// it.
func (d *daemon) newProbe() (*telemetry.Probe, error) {
	if !d.cfg.FlowControl.HeedsReadings() && d.record == nil {
		return nil, nil
	}
	deps := telemetry.Deps{
		SLO: d.cfg.FlowControl.SLO, Logger: d.log, Registerer: d.registry,
		Tell: func(l telemetry.Look) {
			d.dispatcher.Read(l.Runner, l.Model, l.Reading)
			d.record.look(l)
		},
	}
	for _, u := range d.cfg.Upstreams {
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
	return telemetry.New(d.cfg.Readings, deps)
}
