package workload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"
)

const (
	mooncakeBlock = 512             // tokens of a hash id
	mooncakeTick  = 3 * time.Second // over which requests of the same time are spread
	// of the spreading, so that the same file always gives the same trace
	mooncakeSeed = Seed(0x6d6f6f6e)
	maxLineBytes = 8 << 20 // bytes
)

func scanMooncake(src *source) iter.Seq2[Arrival, error] {
	return func(yield func(Arrival, error) bool) {
		lines := bufio.NewScanner(src)
		lines.Buffer(nil, maxLineBytes)
		src.line = 0
		for lines.Scan() {
			src.line++
			if len(bytes.TrimSpace(lines.Bytes())) == 0 {
				continue
			}
			a, err := mooncakeLine(lines.Bytes())
			if lines.Err() != nil {
				err = lines.Err() // the line was cut short
			}
			if err != nil {
				err = src.wrap(err)
			}
			if !yield(a, err) || err != nil {
				return
			}
		}
		if err := lines.Err(); err != nil {
			src.line++
			yield(Arrival{}, src.wrap(err))
		}
	}
}

func mooncakeLine(line []byte) (a Arrival, err error) {
	var fields struct {
		Timestamp *float64  `json:"timestamp"`
		Input     *float64  `json:"input_length"`
		Output    *float64  `json:"output_length"`
		Hashes    *[]uint64 `json:"hash_ids"`
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&fields); err != nil {
		return a, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return a, errors.New("want one JSON object a line")
	}
	for _, f := range []struct {
		name    string
		missing bool
	}{
		{"timestamp", fields.Timestamp == nil}, {"input_length", fields.Input == nil},
		{"output_length", fields.Output == nil}, {"hash_ids", fields.Hashes == nil},
	} {
		if f.missing {
			return a, fieldError(f.name, errors.New("the field is missing"))
		}
	}
	if a.At, err = duration(*fields.Timestamp, time.Millisecond); err != nil {
		return a, fieldError("timestamp", err)
	}
	if a.Input, err = tokens(*fields.Input, 1); err != nil {
		return a, fieldError("input_length", err)
	}
	if a.Output, err = tokens(*fields.Output, 1); err != nil {
		return a, fieldError("output_length", err)
	}
	if len(*fields.Hashes) > (a.Input+mooncakeBlock-1)/mooncakeBlock {
		return a, fieldError("hash_ids",
			errors.New("there are more than input_length has blocks of 512 tokens"))
	}
	a.Prefix, a.Segment = slices.Clip(*fields.Hashes), mooncakeBlock
	return a, nil
}

func fieldError(field string, err error) error { return fmt.Errorf("%s: %w", field, err) }

// spreadTies gives requests with the same time different ones: uniform over the time to the next,
// or over a tick if that is shorter, in their order. A request that is alone at its time is
// unchanged.
func spreadTies(
	arrivals iter.Seq2[Arrival, error], tick time.Duration, seed Seed,
) iter.Seq2[Arrival, error] {
	return func(yield func(Arrival, error) bool) {
		rng := seed.Rand("spread")
		var shared []Arrival
		release := func(until time.Duration) bool {
			if len(shared) > 1 {
				begin := shared[0].At
				width := min(until-begin, tick)
				offsets := make([]time.Duration, len(shared))
				for i := range offsets {
					offsets[i] = time.Duration(rng.Int64N(int64(width)))
				}
				slices.Sort(offsets)
				for i := range shared {
					shared[i].At = begin + offsets[i]
				}
			}
			for _, a := range shared {
				if !yield(a, nil) {
					return false
				}
			}
			shared = shared[:0]
			return true
		}
		for a, err := range arrivals {
			if err == nil && len(shared) > 0 && a.At != shared[0].At && !release(a.At) {
				return
			}
			if err != nil {
				yield(a, err)
				return
			}
			shared = append(shared, a)
		}
		if len(shared) > 0 {
			release(shared[0].At + tick)
		}
	}
}
