package postgres

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// never is the value of a time column for objects that do not expire or have no deadline. It sorts
// after all times.
const never = math.MaxInt64

// micros returns the value of a time column.
func micros(t time.Time) int64 { return t.UnixMicro() }

// microsOrNever is micros for times whose zero value is never.
func microsOrNever(t time.Time) int64 {
	if t.IsZero() {
		return never
	}
	return t.UnixMicro()
}

// microsOrNull is micros for times whose zero value is none.
func microsOrNull(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	at := t.UnixMicro()
	return &at
}

// truncate rounds the times down to microseconds in UTC, as the contract requires.
func truncate(times ...*time.Time) {
	for _, t := range times {
		if !t.IsZero() {
			*t = t.UTC().Truncate(time.Microsecond)
		}
	}
}

// errDocument means that a stored document can't be read.
var errDocument = errors.New("decode document")

// encode encodes a document. It does not escape <, > and &, unlike json.Marshal.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode document: %w", err)
	}
	return b.Bytes()[:b.Len()-1], nil // without the newline
}

func decode[T any](doc []byte) (T, error) {
	var v T
	if err := json.Unmarshal(doc, &v); err != nil {
		return v, fmt.Errorf("%w: %w", errDocument, err)
	}
	return v, nil
}

// limitOrAll returns a LIMIT of one row more than asked for, which shows whether there are more.
// nil: all rows.
func limitOrAll(limit int) *int64 {
	if limit <= 0 {
		return nil
	}
	n := int64(limit) + 1
	return &n
}

// integers returns the numbers as an array of the server. It is not nil: it stands for an empty
// array, not for NULL.
func integers(list []int) []int64 {
	out := make([]int64, len(list))
	for i, n := range list {
		out[i] = int64(n)
	}
	return out
}
