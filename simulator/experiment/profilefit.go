package experiment

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
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/fit"
	"github.com/tidefill/tidefill/simulator/fit/profile"
)

// ProfileFit fits a profile to measured iterations.
type ProfileFit struct {
	// Files are either files of scheduler steps or recordings of serve --record, oldest first.
	Files []string
	Name  string // of the profile
	// Prior gives the coefficients that the measurements do not show. Zero: none.
	Prior engine.Profile
	// MeanContext is the mean number of context tokens of a decoding request, for files without
	// the column context_tokens. 0: unknown.
	MeanContext float64
	Ahead       fit.Ahead
	Seed        uint64 // of the resampling behind the errors
}

// FittedProfile is a profile with what it was fitted to.
type FittedProfile struct {
	File         profile.File
	result       fit.Result
	observations fit.Observations
	held         []fit.HeldOut
}

// Run fits the profile. The error has the errors of all files.
func (p ProfileFit) Run() (FittedProfile, error) {
	var m measurements
	if err := m.readAll(p.Files); err != nil {
		return FittedProfile{}, err
	}
	f := FittedProfile{}
	var err error
	if m.recordings > 0 {
		f.observations, err = m.recorded.Observations()
	} else {
		f.observations, err = fit.Observe(m.steps, p.MeanContext, p.Ahead)
	}
	options := fit.Options{Prior: p.Prior, Seed: p.Seed}
	if err == nil {
		f.result, err = fit.Fit(f.observations, options)
	}
	if err != nil {
		return FittedProfile{}, fmt.Errorf("fit %s: %w", strings.Join(p.Files, ", "), err)
	}
	f.held = fit.CrossValidate(f.observations, options)
	f.File = profile.Of(p.Name, f.result, f.observations, f.held, p.Prior, p.Seed, m.sources)
	return f, nil
}

// measurements is the contents of the files.
type measurements struct {
	steps      []fit.Step
	recorded   fit.RecordingReader
	recordings int // how many of the files are recordings
	sources    []profile.Source
}

func (m *measurements) readAll(files []string) error {
	var errs []error
	seen := map[string]bool{}
	for _, name := range files {
		if seen[name] {
			return requestErrorf("%s is given twice", name)
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
		return requestErrorf("recordings of serve --record and files of steps measure different " +
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

// Plot draws the cost model and the measurements as SVG.
func (f FittedProfile) Plot(out io.Writer) error {
	return fit.Plot(out, f.File.Name, f.result.CostModel, f.observations.All)
}
