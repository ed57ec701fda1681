// Package profile defines the file that a fit writes and a simulation reads: a cost model with the
// error of each coefficient, the engine's limits, and the data it was fitted to.
package profile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/fit"
)

// version is that of the format; a reader refuses others.
const version = 1

// File is a profile with its origin. Times are milliseconds, shares from 0 to 1.
type File struct {
	Version int    `yaml:"version" json:"version"`
	Name    string `yaml:"name" json:"name"`
	// Measured reports that the cost model was fitted to iterations of a real server.
	Measured         bool          `yaml:"measured" json:"measured"`
	CostModel        []Coefficient `yaml:"cost_model" json:"cost_model"`
	KVTokens         int           `yaml:"kv_tokens" json:"kv_tokens"` // 0: not known
	MaxBatchedTokens int           `yaml:"max_batched_tokens" json:"max_batched_tokens"`
	MaxSeqs          int           `yaml:"max_seqs" json:"max_seqs"`
	// Noise is the robust standard deviation of log(measured / predicted).
	Noise float64 `yaml:"noise,omitempty" json:"noise,omitempty"`
	Fit   *Fit    `yaml:"fit,omitempty" json:"fit,omitempty"`
}

// Coefficient is a coefficient of the cost model.
type Coefficient struct {
	Name  string  `yaml:"name" json:"name"` // c0, c1, c2, n0, kv, p1, p2
	Value float64 `yaml:"value" json:"value"`
	// Error is the standard error, Low and High the 5 and 95 % bounds.
	Error float64 `yaml:"error,omitempty" json:"error,omitempty"`
	Low   float64 `yaml:"low,omitempty" json:"low,omitempty"`
	High  float64 `yaml:"high,omitempty" json:"high,omitempty"`
	// From is data, prior or zero in a fitted profile.
	From fit.Origin `yaml:"from,omitempty" json:"from,omitempty"`
}

// Fit describes what a profile was fitted to, and how well.
type Fit struct {
	Sources  []Source `yaml:"sources" json:"sources"`
	Runs     int      `yaml:"runs" json:"runs"`
	Points   int      `yaml:"points" json:"points"` // iterations with a known time
	Outliers int      `yaml:"outliers" json:"outliers"`
	// fewest and most decoding; beyond them the model extrapolates
	Requests [2]int            `yaml:"requests,flow" json:"requests"`
	Prior    string            `yaml:"prior,omitempty" json:"prior,omitempty"`
	Context  fit.ContextSource `yaml:"context" json:"context"`
	Ahead    fit.Ahead         `yaml:"steps_ahead" json:"steps_ahead"`
	Seed     uint64            `yaml:"seed" json:"seed"`
	Error    Error             `yaml:"error" json:"error"`
	HeldOut  []HeldOut         `yaml:"held_out" json:"held_out"`
	Warnings []string          `yaml:"warnings,omitempty" json:"warnings,omitempty"`
}

// Source is a file of steps.
type Source struct {
	File   string `yaml:"file" json:"file"`
	SHA256 string `yaml:"sha256" json:"sha256"`
}

// Error is that of the cost model on measured iterations: means and quantile of (predicted -
// measured) / measured.
type Error struct {
	Mean float64 `yaml:"mean" json:"mean"`
	P90  float64 `yaml:"p90" json:"p90"`
	Bias float64 `yaml:"bias" json:"bias"`
}

// HeldOut is the error on iterations that were not fitted.
type HeldOut struct {
	Split  string `yaml:"split" json:"split"`
	Points int    `yaml:"points" json:"points"`
	Error  *Error `yaml:"error,omitempty" json:"error,omitempty"`
	Fault  string `yaml:"fault,omitempty" json:"fault,omitempty"` // why there is no figure
}

// Of returns the file of a fitted cost model. Limits that the steps don't show are the prior's, or
// the largest seen.
func Of(
	name string, r fit.Result, obs fit.Observations, held []fit.HeldOut, prior engine.Profile,
	seed uint64, sources []Source,
) File {
	f := File{
		Version: version, Name: name, Measured: true, KVTokens: obs.KVTokens,
		MaxBatchedTokens: max(obs.MaxBatch, obs.MaxSeqs), MaxSeqs: obs.MaxSeqs,
		Noise: round(r.Noise),
		Fit: &Fit{
			Sources: sources, Runs: obs.Runs, Points: r.Error.Points, Outliers: r.Outliers,
			Requests: r.Requests,
			Prior:    prior.Name, Context: obs.Context, Ahead: obs.Ahead, Seed: seed,
			Error: errorOf(r.Error), Warnings: r.Warnings,
		},
	}
	if prior.Name != "" {
		f.MaxBatchedTokens, f.MaxSeqs = prior.MaxBatchedTokens, prior.MaxSeqs
		if f.KVTokens == 0 {
			f.KVTokens = prior.KVTokens
		}
	}
	for _, c := range r.Coefficients {
		f.CostModel = append(f.CostModel, Coefficient{c.Name, round(c.Value), round(c.Error),
			round(c.Low),
			round(c.High), c.Origin})
	}
	for _, h := range held {
		out := HeldOut{Split: h.Split, Points: h.Error.Points, Fault: h.Fault}
		if h.Fault == "" {
			e := errorOf(h.Error)
			out.Error = &e
		}
		f.Fit.HeldOut = append(f.Fit.HeldOut, out)
	}
	return f
}

func errorOf(e fit.Error) Error { return Error{round(e.Mean), round(e.P90), round(e.Bias)} }

// Bundled returns the file of a bundled profile.
func Bundled(p engine.Profile) File {
	l := p.CostModel
	return File{
		Version: version, Name: p.Name, Measured: p.Measured, KVTokens: p.KVTokens,
		MaxBatchedTokens: p.MaxBatchedTokens, MaxSeqs: p.MaxSeqs,
		CostModel: []Coefficient{
			{Name: "c0", Value: l.C0}, {Name: "c1", Value: l.C1}, {Name: "c2", Value: l.C2},
			{Name: "n0", Value: l.N0},
			{Name: "kv", Value: l.KV}, {Name: "p1", Value: l.P1}, {Name: "p2", Value: l.P2},
		},
	}
}

// round keeps six digits, more than any fit determines, so that files don't show the last bits of a
// machine's arithmetic.
func round(v float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	if err != nil {
		panic(err) // what was just formatted
	}
	return rounded
}

// Read reads a profile and validates it.
func Read(name string, in io.Reader) (File, error) {
	var f File
	decoder := yaml.NewDecoder(in)
	decoder.KnownFields(true)
	if err := decoder.Decode(&f); err != nil {
		if errors.Is(err, io.EOF) {
			return File{}, fmt.Errorf("%s: empty", name)
		}
		return File{}, fmt.Errorf("%s: %w", name, err)
	}
	if _, err := f.Profile(); err != nil {
		return File{}, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// YAML encodes the file for Read.
func (f File) YAML() ([]byte, error) {
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(f); err != nil {
		return nil, fmt.Errorf("write profile %s: %w", f.Name, err)
	}
	return b.Bytes(), nil
}

// Profile returns the profile for an engine. A KV capacity of 0, not known, must be filled in
// before it is used.
func (f File) Profile() (engine.Profile, error) {
	if f.Version != version {
		return engine.Profile{}, fmt.Errorf("version is %d, want %d", f.Version, version)
	}
	if f.Name == "" {
		return engine.Profile{}, errors.New("name is missing")
	}
	values := map[string]float64{}
	for _, c := range f.CostModel {
		if _, twice := values[c.Name]; twice {
			return engine.Profile{}, fmt.Errorf("cost_model: %s occurs twice", c.Name)
		}
		values[c.Name] = c.Value
	}
	var l costmodel.Model
	for _, c := range []struct {
		name string
		into *float64
	}{{"c0", &l.C0}, {"c1", &l.C1}, {"c2", &l.C2}, {"kv", &l.KV}, {"p1", &l.P1}, {"p2", &l.P2}} {
		v, ok := values[c.name]
		if !ok {
			return engine.Profile{}, fmt.Errorf("cost_model: %s is missing", c.name)
		}
		*c.into = v
		delete(values, c.name)
	}
	knee, ok := values["n0"]
	if !ok || knee != float64(int(knee)) {
		return engine.Profile{}, errors.New("cost_model: n0 must be a whole number of tokens")
	}
	l.N0 = knee
	delete(values, "n0")
	for _, c := range f.CostModel {
		if _, unknown := values[c.Name]; unknown {
			return engine.Profile{}, fmt.Errorf("cost_model: unknown coefficient %q", c.Name)
		}
	}
	p := engine.Profile{Name: f.Name, CostModel: l, Measured: f.Measured, KVTokens: f.KVTokens,
		MaxBatchedTokens: f.MaxBatchedTokens, MaxSeqs: f.MaxSeqs}
	check := engine.DefaultConfig(p)
	check.Profile.KVTokens = max(p.KVTokens, engine.BlockSize)
	if p.KVTokens < 0 {
		return engine.Profile{}, fmt.Errorf("kv_tokens is %d, want 0 (not known) or more",
			p.KVTokens)
	}
	check.Noise = f.Noise
	return p, check.Validate()
}
