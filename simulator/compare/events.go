package compare

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
)

// eventLogs holds the open event log of each scenario, by the scenario's file.
type eventLogs map[string]*eventLog

// openEventLogs creates the logs in Events: events.log, or SCENARIO.events.log for each of several
// scenarios. It opens nothing if Events is empty.
func (c *Comparison) openEventLogs() (eventLogs, error) {
	all := eventLogs{}
	if c.Events == "" {
		return all, nil
	}
	if err := os.MkdirAll(c.Events, 0o777); err != nil {
		return nil, err
	}
	for _, s := range c.Scenarios {
		name := "events.log"
		if len(c.Scenarios) > 1 {
			name = s.Name + ".events.log"
		}
		f, err := newEventLog(filepath.Join(c.Events, name))
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
