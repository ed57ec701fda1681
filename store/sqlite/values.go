package sqlite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// never is the time column of what doesn't expire or isn't due; it sorts after all times.
const never = math.MaxInt64

// micros is how a time stands in a column.
func micros(t time.Time) int64 { return t.UnixMicro() }

// microsOrNever is micros for times whose zero value means never.
func microsOrNever(t time.Time) int64 {
	if t.IsZero() {
		return never
	}
	return t.UnixMicro()
}

// whole rounds the times down to what the contracts keep: microseconds in UTC.
func whole(times ...*time.Time) {
	for _, t := range times {
		if !t.IsZero() {
			*t = t.UTC().Truncate(time.Microsecond)
		}
	}
}

// encode makes a document. It leaves <, > and & as they are, unlike json.Marshal.
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
		return v, fmt.Errorf("decode document: %w", err)
	}
	return v, nil
}

// idList is how a list of keys goes into a statement, for json_each to unfold.
func idList[T any](ids []T) (string, error) {
	b, err := json.Marshal(ids)
	return string(b), err
}

// limitOrAll is a LIMIT that leaves room for the row that tells whether there is more; 0 means all.
func limitOrAll(limit int) int {
	if limit <= 0 {
		return -1
	}
	return limit + 1
}
