package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/simulator/experiment"
)

// The exit statuses, in words for scripts: see rootCommand's help.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitNotComplete = 3 // a batch ended other than completed
	exitFailedLines = 4 // a batch completed, some lines failed
	exitInterrupted = 130
)

// exit ends a command with a status of its own. A nil error has nothing more to say.
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

// complain writes what went wrong for people and returns the status for scripts.
func complain(ctx context.Context, stderr io.Writer, err error) int {
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
	} else if r := (*experiment.RequestError)(nil); errors.As(err, &r) {
		status = exitUsage
	}
	if faults := config.Faults(err); len(faults) > 1 {
		fmt.Fprintf(stderr, "tidefill: %d faults:\n", len(faults))
		for _, fault := range faults {
			fmt.Fprintf(stderr, "  %v\n", fault)
		}
		return status
	}
	fmt.Fprintf(stderr, "tidefill: %v\n", err)
	return status
}
