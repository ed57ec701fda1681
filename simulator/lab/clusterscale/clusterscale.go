// Package clusterscale computes what a cluster of daemons asks PostgreSQL and a bucket, the time of
// that, and what saturates first. The requests follow from the code of the store. Their costs were
// measured, or are published for what can't be measured on one machine (see costs.go).
package clusterscale

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Validate returns an error unless all values are above 0.
func (l Load) Validate() error {
	if l.Pools < 1 || l.Processes < 1 || !(l.Lines > 0) || !(l.BatchLines >= 1) || l.Commit <= 0 {
		return errors.New("all values must be above 0")
	}
	return nil
}

// Print writes what the cluster asks, and what saturates first, as Markdown.
func Print(out io.Writer, load Load) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d pools, %d daemons, %.0f lines per second, batches of %.0f lines, "+
		"commits after %v\n\n", load.Pools, load.Processes, load.Lines, load.BatchLines,
		load.Commit)
	fmt.Fprintln(&b, "| Transactions | Per second | CPU of PostgreSQL |")
	fmt.Fprintln(&b, "| --- | --- | --- |")
	sum := Class{Name: "together"}
	for _, c := range load.Transactions() {
		fmt.Fprintf(&b, "| %s | %.1f | %.1f %% of a core |\n", c.Name, c.PerSecond,
			100*c.PerSecond*c.Cost.Seconds())
		sum.PerSecond += c.PerSecond
		sum.Cost += time.Duration(c.PerSecond * float64(c.Cost))
	}
	fmt.Fprintf(&b, "| together | %.1f | %.1f %% of a core |\n\n", sum.PerSecond,
		100*sum.Cost.Seconds())
	waits := Simulate(load, time.Minute, 1)
	fmt.Fprintf(&b, "commit of a result: median %v, p99 %v after its answer\n",
		waits.Commit.at(0.5), waits.Commit.at(0.99))
	fmt.Fprintf(&b, "transaction: median %v, p99 %v\n", waits.Transaction.at(0.5),
		waits.Transaction.at(0.99))
	fmt.Fprintf(&b, "longest time between renewals of a lease: %v of %v\n\n",
		waits.Renewal.at(1), lease)
	fmt.Fprintln(&b, "| Resource | Load | Of its capacity |")
	fmt.Fprintln(&b, "| --- | --- | --- |")
	for _, r := range load.Resources() {
		fmt.Fprintf(&b, "| %s | %s | %.1f %% |\n", r.Name, r.Detail, 100*r.Share)
	}
	first, times := load.FirstFull()
	fmt.Fprintf(&b, "\nfirst full: %s, at %.0f times this load\n\n", first, times)
	for _, f := range load.Failures() {
		fmt.Fprintln(&b, "- "+f)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
