package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// bestEffort is the completion window of a batch without a deadline, which runs after all others.
const bestEffort = "best_effort"

const (
	minWindow = time.Minute
	maxWindow = 30 * day
	day       = 24 * time.Hour
)

// readWindow reads a completion window: a duration of one minute to 30 days, or best_effort, for
// which window is 0.
func readWindow(o *jsonObject, key string) (given string, window time.Duration) {
	given = o.required(key)
	if given == bestEffort || given == "" {
		return given, 0
	}
	window, err := parseDuration(given)
	if err != nil || window < minWindow || window > maxWindow {
		o.wrongValue(key, "%s is not a completion window; "+
			"use '24h', another duration from '1m' to '30d', or '%s'.", quoted(given), bestEffort)
		return given, 0
	}
	return given, window
}

// parseDuration reads a duration as time.ParseDuration does, with an optional number of days in
// front: 90m, 7d, 1d12h. It accepts no sign.
func parseDuration(text string) (time.Duration, error) {
	if text == "" || text[0] < '0' || text[0] > '9' {
		return 0, fmt.Errorf("duration %s does not begin with a number", quoted(text))
	}
	days, rest, found := strings.Cut(text, "d")
	if !found {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseUint(days, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("duration %s: %w", quoted(text), err)
	}
	fullDays := time.Duration(n) * day // at most 65,535 days: no overflow
	if rest == "" {
		return fullDays, nil
	}
	part, err := time.ParseDuration(rest)
	if err != nil || part < 0 || part >= day {
		return 0, fmt.Errorf("duration %s: what follows the days must be a duration below one day",
			quoted(text))
	}
	return fullDays + part, nil
}

// latestInstant is the last time that RFC 3339 can express, in Unix seconds.
const latestInstant = 253_402_300_799

// parseInstant reads a time: as RFC 3339, as Unix seconds, or as a duration from now, of a second
// or more.
func parseInstant(raw json.RawMessage, now time.Time) (at time.Time, err error) {
	if isNumber(raw) {
		seconds, err := strconv.ParseInt(string(raw), 10, 64)
		if err != nil {
			return time.Time{}, errors.New("a time in Unix seconds must be an integer")
		}
		if seconds < 0 || seconds > latestInstant {
			return time.Time{}, errors.New(
				"out of the range of Unix seconds; are these milliseconds?")
		}
		return time.Unix(seconds, 0).UTC(), nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return time.Time{}, errors.New(
			"expected a time (RFC 3339 or Unix seconds) or a duration from now")
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at.UTC(), nil
	}
	d, err := parseDuration(text)
	if err != nil {
		return time.Time{}, fmt.Errorf(
			"%s is neither a time (such as '2027-01-31T18:00:00Z') "+
				"nor a duration from now (such as '90m')", quoted(text))
	}
	if d < time.Second {
		return time.Time{}, errors.New("a duration from now must be at least '1s'")
	}
	return now.Add(d), nil
}

// instant returns a time in the future; the zero time if absent.
func (o *jsonObject) instant(key string, now time.Time) time.Time {
	raw, ok := o.value(key)
	if !ok {
		return time.Time{}
	}
	at, err := parseInstant(raw, now)
	switch {
	case err != nil:
		o.wrongValue(key, "%v.", err)
	case !at.After(now):
		o.wrongValue(key, "%s has passed; the time is %s.", at.Format(time.RFC3339),
			now.UTC().Format(time.RFC3339))
	}
	return at
}
