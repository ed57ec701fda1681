package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/tidefill/tidefill/client"
)

// repeatEvery is the time between two prints of --watch.
const repeatEvery = 2 * time.Second

// clearScreen moves to the terminal's first row and empties the screen.
const clearScreen = "\x1b[H\x1b[2J"

// repetition prints the same thing again and again.
type repetition struct {
	out, errs io.Writer
	every     time.Duration
	clear     bool // each print replaces the one before; else only what differs is printed
}

// run prints until ctx ends. It waits while the daemon is unreachable, unless it never answered:
// the address may be wrong.
func (r repetition) run(ctx context.Context, print func(io.Writer) error) error {
	last, waits := "", false
	for first := true; ; first = false {
		var text bytes.Buffer
		err := print(&text)
		switch {
		case err == nil:
			waits = false
			now := text.String()
			if r.clear {
				now = clearScreen + now
			} else if now == last {
				break
			}
			last = now
			if _, err := io.WriteString(r.out, now); err != nil {
				return err
			}
		case first || ctx.Err() != nil || !passes(err):
			return err
		case !waits:
			waits = true
			printError(r.errs, "tidefill: waiting for the daemon: ", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(r.every):
		}
	}
}

// watching prints once or, with --watch, repeatedly.
func watching(
	ctx context.Context, watch bool, out, errs io.Writer, print func(io.Writer) error,
) error {
	if !watch {
		return print(out)
	}
	return repetition{out, errs, repeatEvery, screenOf(out).terminal}.run(ctx, print)
}

// passes reports whether what was printed before may be printed again later. A daemon that has
// just started knows no pools yet.
func passes(err error) bool {
	refused := (*client.Error)(nil)
	return client.Temporary(err) || errors.As(err, &refused) && refused.Code == "pool_not_found"
}
