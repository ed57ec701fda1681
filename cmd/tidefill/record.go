package main

import (
	"time"

	"github.com/tidefill/tidefill/dispatch"
	days "github.com/tidefill/tidefill/internal/recording"
	"github.com/tidefill/tidefill/telemetry"
)

// record is the recording of a daemon's days.
type record struct {
	*days.Recorder
	file *days.File
}

// newRecord begins the recording; nil where none is wanted.
func (d *daemon) newRecord() (*record, error) {
	if d.cfg.Record == "" {
		return nil, nil
	}
	began, slo := time.Now(), d.cfg.FlowControl.SLO
	file, err := days.OpenFile(d.cfg.Record, days.Header{
		Began: began.UTC(), Policy: d.cfg.FlowControl.Policy, TTFT: slo.TTFT.Seconds(),
		TPOT: slo.TPOT.Seconds(),
	}, d.log)
	if err != nil {
		return nil, err
	}
	r := &record{Recorder: days.NewRecorder(began, file), file: file}
	file.Opening(r.Open)
	return r, nil
}

// watcher is what the dispatcher tells of its steps.
func (r *record) watcher() dispatch.Watcher {
	if r == nil {
		return nil
	}
	return r.Recorder
}

// look takes what a look showed that the planner is not told.
func (r *record) look(l telemetry.Look) {
	if r != nil {
		r.Latencies(time.Now(), l.Runner, l.Model, l.TTFT, l.TPOT)
	}
}
