package workload

import (
	"errors"
	"io"
	"slices"
	"strings"
	"time"
)

// ReadCurve reads a rate curve from a CSV file, plain or gzipped: t_s (seconds, from 0, increasing)
// and any number of rate columns, of which it takes the one named. Each rate holds around its time;
// after the last, one more step of time leads back to the first.
func ReadCurve(name string, r io.Reader, column string) (*Curve, error) {
	src, err := open(name, r)
	if err != nil {
		return nil, err
	}
	rows, err := openTable(src)
	if err != nil {
		return nil, err
	}
	if !rows.has("t_s") {
		return nil, src.errorf("column %q is missing", "t_s")
	}
	if column == "t_s" || !rows.has(column) {
		rates := slices.DeleteFunc(slices.Clone(rows.header), func(c string) bool {
			return c == "t_s"
		})
		return nil, src.errorf("no rate column %q, the file has %s", column,
			strings.Join(rates, ", "))
	}
	var at []time.Duration
	var rate []float64
	for {
		err := rows.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		t, err := rows.seconds("t_s")
		if err != nil {
			return nil, err
		}
		if len(at) == 0 && t != 0 {
			return nil, rows.fieldError("t_s", errors.New("want the first time to be 0"))
		}
		if len(at) > 0 && t <= at[len(at)-1] {
			return nil, rows.fieldError("t_s", errors.New("want times that increase"))
		}
		x, err := rows.number(column)
		if err != nil {
			return nil, err
		}
		if !(x >= 0 && x <= maxRate) {
			return nil, rows.fieldError(column,
				errors.New("want a finite rate that is not negative"))
		}
		at, rate = append(at, t), append(rate, x)
	}
	if len(at) < 2 {
		return nil, src.errorf("a rate curve needs at least two rows, this has %d", len(at))
	}
	last := len(at) - 1
	curve, err := NewCurve(at, rate, 2*at[last]-at[last-1])
	if err != nil {
		return nil, src.wrap(err)
	}
	return curve, nil
}
