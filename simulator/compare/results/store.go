package results

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// Store keeps values in a file of JSON lines, by key. Processes may append to one file at a time
// without seeing each other's lines. A nil Store keeps nothing.
type Store[T any] struct {
	file string

	mu     sync.Mutex
	values map[string]T
}

// line is one value in the file.
type line[T any] struct {
	Key   string `json:"key"`
	Value T      `json:"value"`
}

// Open reads the values of a file in a directory, which is created if need be. Without a directory
// it returns nil.
func Open[T any](dir, name string) (*Store[T], error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	s := &Store[T]{file: filepath.Join(dir, name), values: map[string]T{}}
	in, err := os.Open(s.file)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	} else if err != nil {
		return nil, err
	}
	defer in.Close()
	for lines := bufio.NewReader(in); ; {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return s, nil // a line without an end is of a process that was killed
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", s.file, err)
		}
		var l line[T]
		if json.Unmarshal(text, &l) == nil { // the rest of a line that was cut off may precede it
			s.values[l.Key] = l.Value
		}
	}
}

// Get returns the value of a key.
func (s *Store[T]) Get(key string) (value T, ok bool) {
	if s == nil {
		return value, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok = s.values[key]
	return value, ok
}

// Put writes the value of a key.
func (s *Store[T]) Put(key string, value T) error {
	if s == nil {
		return nil
	}
	text, err := json.Marshal(line[T]{key, value})
	if err != nil {
		return fmt.Errorf("write %s: %w", s.file, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[key] = value
	out, err := os.OpenFile(s.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	// A line break first ends a line that was cut off.
	_, err = out.Write(append(append([]byte{'\n'}, text...), '\n'))
	return errors.Join(err, out.Close())
}
