package driver

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/tidefill/tidefill/autoscale"
)

// recordBytes limits the file of decisions. A full one becomes FILE.1, in the place of the one
// before.
const recordBytes = 256 << 20

// record writes each decision with what it was based on to a file. The nil record writes nothing.
type record struct {
	path  string
	limit int64

	file *os.File // nil: not open
	size int64
	// of the next step
	begin    autoscale.Begin
	recalled []autoscale.Recalled
}

// newRecord returns the record of a configuration.
func newRecord(cfg autoscale.Config) *record {
	if cfg.Record == "" {
		return nil
	}
	return &record{path: cfg.Record, limit: recordBytes, begin: autoscale.FleetStarted}
}

// beginAnew notes that the next step is the first one of a fleet.
func (r *record) beginAnew() {
	if r != nil {
		r.begin, r.recalled = autoscale.FleetStarted, nil
	}
}

// handedOver notes what the fleet was given before the next step.
func (r *record) handedOver(recalled []autoscale.Recalled) {
	if r != nil {
		r.recalled = append(r.recalled, recalled...)
	}
}

// write writes a decision and what it was based on.
func (r *record) write(state autoscale.State, d autoscale.Decision) error {
	if r == nil {
		return nil
	}
	if r.file == nil {
		if err := r.open(); err != nil {
			return err
		}
	}
	row, err := autoscale.Row{Begin: r.begin, Recalled: r.recalled, State: state,
		Decided: d.Pools, Forecasts: d.Jobs}.Append(nil)
	if err != nil {
		return err
	}
	n, err := r.file.Write(row)
	r.size += int64(n)
	if err != nil {
		// A part of a row would make the next one unreadable.
		return errors.Join(err, r.file.Truncate(r.size-int64(n)), r.close())
	}
	r.begin, r.recalled = "", nil
	return nil
}

// open opens the file, to append to it.
func (r *record) open() (err error) {
	r.file, err = os.OpenFile(r.path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if r.size, err = complete(r.file); err == nil {
		err = r.file.Truncate(r.size)
	}
	if err != nil {
		return errors.Join(err, r.close())
	}
	return nil
}

// complete returns the size of a file without a row at its end that is not complete, because the
// daemon was killed while it wrote.
func complete(file *os.File) (size int64, err error) {
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	part := make([]byte, 64<<10)
	for end := info.Size(); end > 0; end -= int64(len(part)) {
		begin := max(0, end-int64(len(part)))
		part = part[:end-begin]
		if _, err := file.ReadAt(part, begin); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return begin + int64(i) + 1, nil
		}
	}
	return 0, nil
}

func (r *record) close() error {
	if r == nil || r.file == nil {
		return nil
	}
	file := r.file
	r.file = nil
	return file.Close()
}

// rotate begins another file if this one is full. learned is what the fleet knows now.
func (r *record) rotate(now time.Time, learned func() []autoscale.PoolLearned) error {
	if r == nil || r.file == nil || r.size < r.limit {
		return nil
	}
	if err := r.close(); err != nil {
		return err
	}
	if err := os.Rename(r.path, r.path+".1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r.begin = autoscale.FleetContinued
	for _, l := range learned() {
		r.recalled = append(r.recalled, autoscale.Recalled{At: now, PoolLearned: l})
	}
	return nil
}

// recorded records a decision. What can't be written is reported, and lost.
func (d *Driver) recorded(ctx context.Context, g *gathered, decision autoscale.Decision) {
	err := d.record.write(g.state, decision)
	if err == nil {
		err = d.record.rotate(g.at, func() []autoscale.PoolLearned {
			return d.fleet.Learned(g.at)
		})
	}
	if err != nil {
		d.log.WarnContext(ctx, "could not record a decision, going on without; check "+
			"autoscale.record", "file", d.record.path, "error", err)
	}
}
