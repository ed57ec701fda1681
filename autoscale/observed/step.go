package observed

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/tidefill/tidefill/autoscale"
)

// Version is the version of the rows of a file.
const Version = 1

// Step is a decision with what it was based on. It is a row of a file in JSON.
type Step struct {
	Version int
	// Begin is set in the first step of a fleet, and in the first one of a file.
	Begin Begin `json:",omitempty"`
	// Recalled was handed over to the fleet before the step, learned by itself or by others.
	Recalled []Recalled `json:",omitempty"`
	State
	// Decided has the decision for each of the pools, Forecasts that for each job with a deadline.
	Decided   []autoscale.Wanted
	Forecasts []autoscale.Forecast
}

// Begin is how a fleet began, or a file.
type Begin string

const (
	// Started: the fleet had observed nothing.
	Started Begin = "started"
	// Continued: the fleet had decided before, in another file. What it had learned is recalled.
	// What it had observed otherwise is missing, so that the next minutes may be decided otherwise.
	Continued Begin = "continued"
)

// Recalled is what a fleet was given that was learned before.
type Recalled struct {
	At  time.Time
	Age time.Duration
	autoscale.PoolLearned
}

// unknownRate stands for a rate that is not known, since JSON has no NaN. A rate is not negative.
const unknownRate = -1

// Append appends the step to a text as a row.
func (s Step) Append(text []byte) ([]byte, error) {
	s.Version = Version
	pools := make([]Pool, len(s.Pools))
	copy(pools, s.Pools)
	for i := range pools {
		if rate := &pools[i].Interactive.Rate; math.IsNaN(*rate) {
			*rate = unknownRate
		}
	}
	s.Pools = pools
	row, err := json.Marshal(s)
	if err != nil {
		return text, fmt.Errorf("write a decision as JSON: %w", err)
	}
	return append(append(text, row...), '\n'), nil
}

// Read reads the rows of a file and calls each with each of them. A last row that is not complete
// is left out, since the daemon may have been killed while it wrote.
func Read(from io.Reader, each func(Step) error) error {
	rows := bufio.NewReader(from)
	for number := 1; ; number++ {
		row, err := rows.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var s Step
		decoder := json.NewDecoder(bytes.NewReader(row))
		decoder.DisallowUnknownFields()
		err = decoder.Decode(&s)
		switch {
		case err == nil && s.Version != Version:
			err = fmt.Errorf("it has the version %d, want %d", s.Version, Version)
		case err == nil && len(s.Decided) != len(s.Pools):
			err = fmt.Errorf("it has %d pools and %d decisions", len(s.Pools), len(s.Decided))
		}
		if err != nil {
			return fmt.Errorf("row %d: %w", number, err)
		}
		for i := range s.Pools {
			if rate := &s.Pools[i].Interactive.Rate; *rate == unknownRate {
				*rate = math.NaN()
			}
		}
		if err := each(s); err != nil {
			return err
		}
	}
}
