package autoscale

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// RowVersion is the version of the rows of a file.
const RowVersion = 1

// Row is a decision with what it was based on, as JSON. The daemon writes its rows to the file
// record, and the simulator decides on them again.
type Row struct {
	Version int
	// Begin is set in the first step of a fleet, and in the first one of a file.
	Begin Begin `json:",omitempty"`
	// Recalled was handed over to the fleet before the step, learned by itself or by others.
	Recalled []Recalled `json:",omitempty"`
	State
	// Decided has the decision for each of the pools, Forecasts that for each job with a deadline.
	Decided   []Wanted
	Forecasts []Forecast
}

// Begin says what came before a row.
type Begin string

const (
	// FleetStarted: the fleet had observed nothing.
	FleetStarted Begin = "started"
	// FleetContinued: the fleet had decided before, in another file. What it had learned is
	// recalled. What else it had observed is missing, so that the next minutes may be decided
	// otherwise.
	FleetContinued Begin = "continued"
)

// Recalled is what a fleet was given that was learned before.
type Recalled struct {
	At  time.Time
	Age time.Duration
	PoolLearned
}

// unknownRate stands for a rate that is not known, since JSON has no NaN. A rate is not negative.
const unknownRate = -1

// Append appends the step to a text as a row.
func (s Row) Append(text []byte) ([]byte, error) {
	s.Version = RowVersion
	pools := make([]PoolState, len(s.Pools))
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

// ReadRows reads the rows of a file and calls each with each of them. A last row that is not
// complete is left out, since the daemon may have been killed while it wrote.
func ReadRows(from io.Reader, each func(Row) error) error {
	rows := bufio.NewReader(from)
	for number := 1; ; number++ {
		row, err := rows.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var s Row
		decoder := json.NewDecoder(bytes.NewReader(row))
		decoder.DisallowUnknownFields()
		err = decoder.Decode(&s)
		switch {
		case err == nil && s.Version != RowVersion:
			err = fmt.Errorf("it has the version %d, want %d", s.Version, RowVersion)
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
