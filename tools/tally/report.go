package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"time"
)

const (
	shownTests = 10
	// maxTest is the time, in seconds, above which a test is named in the report: it belongs into
	// make test-all.
	maxTest = 30
)

// report prints the stages, the slowest tests and the skipped ones. It fails above the budget.
func report(to io.Writer, budget time.Duration) error {
	stages, err := load()
	if err != nil {
		return err
	}
	var tests []Test
	total := 0.0
	fmt.Fprintln(to, "\nstage            time  tests")
	for name, parts := range byName(stages) {
		seconds, count := 0.0, 0
		for _, s := range parts {
			seconds += s.Seconds
			count += len(s.Tests)
			tests = append(tests, s.Tests...)
		}
		total += seconds
		fmt.Fprintf(to, "%-12s %8s %6s\n", name, short(seconds), blankZero(count))
	}
	fmt.Fprintf(to, "%-12s %8s %6d\n", "all", short(total), len(tests))
	slices.SortStableFunc(tests, func(a, b Test) int { return cmp.Compare(b.Seconds, a.Seconds) })
	fmt.Fprintln(to, "\nslowest tests")
	for i, t := range tests {
		if t.Seconds == 0 || i >= shownTests && t.Seconds <= maxTest {
			break
		}
		note := ""
		if t.Seconds > maxTest {
			note = fmt.Sprintf("  above %d s: skip it with -short, or make it faster", maxTest)
		}
		fmt.Fprintf(to, "%8s  %s %s%s\n", short(t.Seconds), path.Base(t.Package), t.Name, note)
	}
	printSkipped(to, tests)
	if took := time.Duration(total * float64(time.Second)); budget > 0 && took > budget {
		return fmt.Errorf("the tests took %s, more than their budget of %s (BUDGET=)",
			took.Round(time.Second), budget)
	}
	return nil
}

// byName yields the stages of each name, in the order in which the first of each began.
func byName(stages []Stage) func(yield func(string, []Stage) bool) {
	return func(yield func(string, []Stage) bool) {
		of := map[string][]Stage{}
		var names []string
		for _, s := range stages {
			if of[s.Name] == nil {
				names = append(names, s.Name)
			}
			of[s.Name] = append(of[s.Name], s)
		}
		for _, name := range names {
			if !yield(name, of[name]) {
				return
			}
		}
	}
}

func printSkipped(to io.Writer, tests []Test) {
	names := map[string][]string{} // by reason
	for _, t := range tests {
		if t.Skipped != "" {
			names[t.Skipped] = append(names[t.Skipped], path.Base(t.Package)+" "+t.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	fmt.Fprintln(to, "\nskipped")
	for _, why := range slices.Sorted(maps.Keys(names)) {
		fmt.Fprintf(to, "  %s:\n", why)
		for _, name := range names[why] {
			fmt.Fprintf(to, "    %s\n", name)
		}
	}
}

func short(seconds float64) string {
	if seconds < 60 {
		return fmt.Sprintf("%.1f s", seconds)
	}
	return fmt.Sprintf("%d:%02d", int(seconds)/60, int(seconds)%60)
}

func blankZero(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
