package testservers

import (
	"bytes"
	"strings"
	"sync"
)

// Log holds the output of processes. The zero value is empty.
type Log struct {
	mu     sync.Mutex
	output bytes.Buffer
}

// Write implements [io.Writer].
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.output.Write(p)
}

// String returns all output.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.output.String()
}

// Tail returns the last part, for the messages of failing tests.
func (l *Log) Tail() string {
	const lines = 60
	all := strings.SplitAfter(l.String(), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "")
}
