package main

import (
	"bufio"
	"errors"
	"os"
)

// eventFile is a log that is written in large pieces.
type eventFile struct {
	*bufio.Writer
	file *os.File
}

func newEventFile(path string) (*eventFile, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &eventFile{bufio.NewWriterSize(f, 1<<16), f}, nil
}

func (f *eventFile) close() error { return errors.Join(f.Flush(), f.file.Close()) }
