package main

import (
	"io"
	"log/slog"
)

func newLogger(format string, level slog.Leveler, out io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == "json" {
		options.ReplaceAttr = durationWithUnit
		return slog.New(slog.NewJSONHandler(out, options))
	}
	return slog.New(slog.NewTextHandler(out, options))
}

// durationWithUnit writes durations in JSON as the text format does, for example "5.079s". The JSON
// handler writes a number of nanoseconds, which does not show its unit.
func durationWithUnit(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
