package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/simulator/compare"
)

// The exit statuses. The help of rootCommand documents them.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitNotComplete = 3 // a batch ended other than completed
	exitFailedLines = 4 // a batch completed, some lines failed
	exitInterrupted = 130
)

// exit is an error with an exit status. If err is nil, nothing is printed.
type exit struct {
	status int
	err    error
}

func (e exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e exit) Unwrap() error { return e.err }

func usageErrorf(format string, args ...any) error {
	return exit{exitUsage, fmt.Errorf(format, args...)}
}

// report prints an error and returns the exit status.
func report(ctx context.Context, stderr io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	status := exitError
	if e := (exit{}); errors.As(err, &e) {
		status = e.status
		if e.err == nil {
			return status
		}
	} else if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return exitInterrupted
	} else if r := (*compare.RequestError)(nil); errors.As(err, &r) {
		status = exitUsage
	}
	if errs := config.Faults(err); len(errs) > 1 {
		fmt.Fprintf(stderr, "tidefill: %d errors:\n", len(errs))
		for _, err := range errs {
			printError(stderr, "  ", err)
		}
		return status
	}
	printError(stderr, "tidefill: ", err)
	return status
}
