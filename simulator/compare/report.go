package compare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/report"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// WriteReport writes a report as report.html and result.json into a directory, which is created if
// need be.
func WriteReport(dir string, result interface{ HTML(io.Writer) error }) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	var page, figures bytes.Buffer
	if err := result.HTML(&page); err != nil {
		return fmt.Errorf("draw report: %w", err)
	}
	if err := json.NewEncoder(&figures).Encode(result); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "report.html"), page.Bytes(), 0o666),
		os.WriteFile(filepath.Join(dir, "result.json"), figures.Bytes(), 0o666),
	)
}

// newReport returns the scenario's part of the report, before anything has run.
func (s *Scenario) newReport(seeds []uint64) report.Scenario {
	slo := s.Scenario.Interactive.SLO
	r := report.Scenario{
		Name: s.Scenario.Name, About: s.Scenario.About, File: s.File,
		Hours: s.Scenario.Horizon.Hours(), Replicas: s.Scenario.Pool.Replicas,
		Profile: report.Profile{Name: s.Fitted.Name, Calibrated: s.Fitted.Measured},
		SLO: report.SLO{TTFT: milliseconds(slo.TTFT), TPOT: milliseconds(slo.TPOT),
			Attainment: slo.Attainment},
	}
	if fit := s.Fitted.Fit; fit != nil {
		percent := 100 * fit.Error.Mean
		r.Profile.MeanError = &percent
	}
	if other := s.Scenario.Goals.ComparedWith.Scenario; other != "" {
		r.ComparedWith = filepath.Clean(scenario.ResolvePath(s.File, other))
	}
	for _, seed := range seeds {
		r.Seeds = append(r.Seeds, report.Seed{Seed: seed})
	}
	r.SetGoals(s.Scenario.Goals)
	return r
}

// traffic describes how the interactive traffic of a seed was made; nil without a trace.
func (s *Scenario) traffic(seed uint64) (*report.Traffic, error) {
	if s.Trace == nil {
		return nil, nil // a description would take another run
	}
	h, err := s.With(seed, simulator.Policy{}).SummarizeTraffic()
	if err != nil {
		return nil, fmt.Errorf("%s: interactive traffic: %w", s.File, err)
	}
	return report.TrafficOf(h), nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
