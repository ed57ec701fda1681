// Command tally runs the stages of make test and says where their time went.
//
//	tally start                      # forget earlier stages
//	tally stage unit go test ./...   # run a stage; its status is that of the command
//	tally report -budget 25m         # stages, slowest tests, skipped tests; 1 above the budget
//
// The results of stages are kept in bin/times.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"
)

const dir = "bin/times"

func main() {
	if err := run(os.Args[1:]); err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			os.Exit(max(exit.ExitCode(), 1))
		}
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "start":
		return os.RemoveAll(dir)
	case len(args) > 2 && args[0] == "stage":
		return stage(args[1], args[2:])
	case len(args) > 0 && args[0] == "report":
		flags := flag.NewFlagSet("report", flag.ContinueOnError)
		budget := flags.Duration("budget", 0, "the time that all stages may take; 0: any")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return report(os.Stdout, *budget)
	}
	return errors.New("want start, stage NAME COMMAND..., or report [-budget DURATION]")
}

// stage runs a command and keeps its result, also that of a command that failed.
func stage(name string, command []string) error {
	goTest := len(command) > 1 && command[1] == "test"
	if goTest {
		at := 2
		if len(command) > 3 && command[2] == "-C" { // must be the first flag
			at = 4
		}
		command = slices.Insert(slices.Clone(command), at, "-json")
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stderr = os.Stdin, os.Stderr
	began := time.Now()
	result := Stage{Name: name, Began: began}
	var err error
	if goTest {
		err = result.read(cmd, os.Stdout)
	} else {
		cmd.Stdout = os.Stdout
		err = cmd.Run()
	}
	result.Seconds, result.Failed = time.Since(began).Seconds(), err != nil
	return errors.Join(err, result.save())
}
