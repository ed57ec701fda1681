package main

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidefill/tidefill/simulator/experiment"
)

// eventLogs holds the open events.log of each scenario, by the scenario's file.
type eventLogs map[string]*eventLog

// openEventLogs creates the files in a directory, which is created if need be.
func openEventLogs(dir string, scenarios []experiment.Scenario) (eventLogs, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	all := eventLogs{}
	for _, s := range scenarios {
		name := "events.log"
		if len(scenarios) > 1 {
			name = strings.TrimSuffix(filepath.Base(s.File), ".yaml") + ".events.log"
		}
		f, err := newEventLog(filepath.Join(dir, name))
		if err != nil {
			return nil, errors.Join(err, all.close())
		}
		all[s.File] = f
	}
	return all, nil
}

func (l eventLogs) close() error {
	var errs []error
	for _, f := range l {
		errs = append(errs, f.close())
	}
	return errors.Join(errs...)
}

// eventLog is a file that is written in large pieces.
type eventLog struct {
	*bufio.Writer
	file *os.File
}

func newEventLog(path string) (*eventLog, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &eventLog{bufio.NewWriterSize(f, 1<<16), f}, nil
}

func (l *eventLog) close() error { return errors.Join(l.Flush(), l.file.Close()) }
