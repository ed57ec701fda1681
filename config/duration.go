package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var days = regexp.MustCompile(`([0-9]+(?:\.[0-9]+)?)d`)

// ParseDuration reads a duration in Go's syntax, to which it adds days of 24 hours: 90s, 1h30m, 7d,
// 1d12h.
func ParseDuration(s string) (time.Duration, error) {
	hours := days.ReplaceAllStringFunc(s, func(d string) string {
		n, _ := strconv.ParseFloat(d[:len(d)-1], 64)
		return strconv.FormatFloat(n*24, 'f', -1, 64) + "h"
	})
	d, err := time.ParseDuration(hours)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration; write one such as 500ms, 30s, 1h30m or 7d", s)
	}
	return d, nil
}

// FormatDuration returns a duration in ParseDuration's syntax, without the zero parts that Go
// prints.
func FormatDuration(d time.Duration) string {
	if d != 0 && d%(24*time.Hour) == 0 {
		return strconv.FormatInt(int64(d/(24*time.Hour)), 10) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-len("0s")]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-len("0m")]
	}
	return s
}
