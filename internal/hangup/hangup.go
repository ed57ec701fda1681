// Package hangup catches SIGHUP for the daemon from its first milliseconds on: who starts it may
// ask for a reload at once, and the signal would end the process.
//
// Go initializes a package as soon as those that it imports are, in the order of their paths. This
// one imports little, so most of what a daemon links is initialized after it. In another command
// than serve the signal ends the process, as when its terminal closes.
package hangup

import (
	"os"
	"os/signal"
	"syscall"
)

var signals = make(chan os.Signal, 1)

func init() {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		Signals()
	}
}

// Signals returns the channel that gets each SIGHUP of the process, which it does not end any more.
// One that nobody has taken yet stands for those that follow.
func Signals() <-chan os.Signal {
	signal.Notify(signals, syscall.SIGHUP)
	return signals
}
