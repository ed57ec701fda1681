package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Stage is the result of a command. One name may have several.
type Stage struct {
	Name    string
	Began   time.Time
	Seconds float64
	Failed  bool
	Tests   []Test // those of go test, without subtests
}

// Test is the result of a test.
type Test struct {
	Package, Name string
	Seconds       float64 // without the time in which it waited for others
	Skipped       string  // the reason; empty: it ran
}

// event is one line of go test -json.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

// read runs go test -json. It prints a line for each package, and what failed tests and builds
// print.
func (s *Stage) read(cmd *exec.Cmd, to io.Writer) error {
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	output := map[string][]string{} // by package, and by package and test
	lines := bufio.NewReader(stdout)
	for {
		line, readErr := lines.ReadBytes('\n')
		var e event
		switch {
		case len(line) == 0:
		case json.Unmarshal(line, &e) != nil:
			_, _ = to.Write(line)
		default:
			s.add(e, output, to)
		}
		if readErr != nil {
			break
		}
	}
	return cmd.Wait()
}

func (s *Stage) add(e event, output map[string][]string, to io.Writer) {
	test, _, sub := strings.Cut(e.Test, "/")
	key := e.Package + " " + test
	switch e.Action {
	case "build-output":
		io.WriteString(to, e.Output)
	case "output":
		output[key] = append(output[key], e.Output)
	case "pass", "fail", "skip":
		if sub {
			return
		}
		if test == "" {
			endPackage(e, output, to)
			return
		}
		t := Test{Package: e.Package, Name: test, Seconds: e.Elapsed}
		if e.Action == "skip" {
			t.Skipped = reason(output[key])
		}
		if e.Action == "fail" {
			io.WriteString(to, strings.Join(output[key], ""))
		}
		delete(output, key)
		s.Tests = append(s.Tests, t)
	}
}

// endPackage prints the result of a package. If it failed, that includes what it prints without a
// test, such as a race, and the output of tests that did not end, such as a panic.
func endPackage(e event, output map[string][]string, to io.Writer) {
	for _, key := range slices.Sorted(maps.Keys(output)) {
		if pkg, _, _ := strings.Cut(key, " "); pkg != e.Package {
			continue
		}
		for _, line := range output[key] {
			if e.Action == "fail" || strings.HasPrefix(line, "ok ") {
				io.WriteString(to, line)
			}
		}
		delete(output, key)
	}
}

// reason returns what a test printed when it was skipped: "    file_test.go:12: why".
func reason(output []string) string {
	for _, line := range output {
		if _, why, found := strings.Cut(strings.TrimSpace(line), "_test.go:"); found {
			if _, why, found = strings.Cut(why, ": "); found {
				return why
			}
		}
	}
	return "no reason given"
}

func (s *Stage) save() error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%d-%s.json", s.Began.UnixNano(), s.Name)
	return os.WriteFile(filepath.Join(dir, name), data, 0o644)
}

// load returns the stages in the order in which they began.
func load() ([]Stage, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	stages := make([]Stage, len(names))
	for i, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(data, &stages[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return stages, nil
}
