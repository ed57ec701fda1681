package app

import (
	"log/slog"
	"time"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/dispatch/plan"
	format "github.com/tidefill/tidefill/internal/recording"
	"github.com/tidefill/tidefill/telemetry"
)

// recording writes what a later simulation needs to Config.Record. The nil recording records
// nothing.
type recording struct {
	*format.Recorder
	file *format.File
}

// newRecording opens the file; nil if none is configured.
func newRecording(cfg config.Config, log *slog.Logger) (*recording, error) {
	if cfg.Record == "" {
		return nil, nil
	}
	began, slo := time.Now(), cfg.FlowControl.SLO
	file, err := format.OpenFile(cfg.Record, format.Header{
		Began: began.UTC(), Policy: cfg.FlowControl.Policy, TTFT: slo.TTFT.Seconds(),
		TPOT: slo.TPOT.Seconds(),
	}, log)
	if err != nil {
		return nil, err
	}
	r := &recording{Recorder: format.NewRecorder(began, file), file: file}
	file.SetPreamble(r.Preamble)
	return r, nil
}

// watcher returns what the dispatcher reports its steps to; nil for the nil recording.
func (r *recording) watcher() dispatch.Watcher {
	if r == nil {
		return nil
	}
	return r.Recorder
}

// onPools returns what the dispatcher reports the state of its pools to; nil for the nil recording.
func (r *recording) onPools() func(time.Time, []plan.PoolStatus) {
	if r == nil {
		return nil
	}
	return r.Pools
}

// latencies records the latency histograms of a reading, which the planner does not receive.
func (r *recording) latencies(s telemetry.Sample) {
	if r != nil {
		r.Latencies(time.Now(), s.Runner, s.Model, s.TTFT, s.TPOT)
	}
}
