package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidefill/tidefill/internal/recording"
	"github.com/tidefill/tidefill/simulator/fit"
	"github.com/tidefill/tidefill/simulator/fit/profile"
)

// fittedProfile is a profile with what it was fitted to.
type fittedProfile struct {
	file         profile.File
	result       fit.Result
	observations fit.Observations
	held         []fit.HeldOut
}

// fit fits the profile to files of scheduler steps, or to recordings of serve --record, the oldest
// first. The error has the errors of all files.
func (p *profileFit) fit(files []string) (fittedProfile, error) {
	var m measurements
	if err := m.readAll(files); err != nil {
		return fittedProfile{}, err
	}
	f := fittedProfile{}
	var err error
	if m.recordings > 0 {
		f.observations, err = m.recorded.Observations()
	} else {
		f.observations, err = fit.Observe(m.steps, p.meanContext, p.ahead)
	}
	options := fit.Options{Prior: p.prior, Seed: p.seed}
	if err == nil {
		f.result, err = fit.Fit(f.observations, options)
	}
	if err != nil {
		return fittedProfile{}, fmt.Errorf("fit %s: %w", strings.Join(files, ", "), err)
	}
	f.held = fit.CrossValidate(f.observations, options)
	f.file = profile.Of(p.profileName(files[0]), f.result, f.observations, f.held, p.prior, p.seed,
		m.sources)
	return f, nil
}

// measurements is the contents of the files.
type measurements struct {
	steps      []fit.Step
	recorded   fit.RecordingReader
	recordings int // files that are recordings
	sources    []profile.Source
}

func (m *measurements) readAll(files []string) error {
	var errs []error
	seen := map[string]bool{}
	for _, name := range files {
		if seen[name] {
			return usageErrorf("%s is given twice", name)
		}
		seen[name] = true
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := m.read(name, content); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 && m.recordings > 0 && m.recordings < len(files) {
		return usageErrorf("recordings of serve --record and files of steps measure different " +
			"things; fit one kind at a time")
	}
	return errors.Join(errs...)
}

func (m *measurements) read(name string, content []byte) error {
	if recording.Detect(content) {
		m.recordings++
		_, err := recording.Read(name, bytes.NewReader(content), func(e recording.Entry) error {
			m.recorded.Add(e)
			return nil
		})
		if err != nil {
			return err
		}
	} else {
		steps, err := fit.ReadSteps(name, bytes.NewReader(content))
		if err != nil {
			return err
		}
		m.steps = append(m.steps, steps...)
	}
	sum := sha256.Sum256(content)
	m.sources = append(m.sources, profile.Source{File: filepath.Base(name),
		SHA256: hex.EncodeToString(sum[:])})
	return nil
}

// draw draws the cost model and the measurements as SVG.
func (f fittedProfile) draw(out io.Writer) error {
	return fit.Plot(out, f.file.Name, f.result.CostModel, f.observations.All)
}
