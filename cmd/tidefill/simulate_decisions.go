package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/simulator"
)

// decideAgain decides on the recorded states of --decisions with the configuration, and prints
// where the number of replicas changes, in the recording or now.
func (s *simulation) decideAgain(out io.Writer) error {
	cfg, err := s.Configuration()
	if err != nil {
		return err
	}
	candidate, err := cfg.Candidate("")
	if err != nil {
		return err
	}
	again, err := simulator.NewRedecider(candidate.Policy.Scale)
	if err != nil {
		return err
	}
	file, err := os.Open(s.decisions)
	if err != nil {
		return err
	}
	defer file.Close()
	table := newDecisionTable(out)
	err = autoscale.ReadRows(file, func(step autoscale.Row) error {
		d, err := again.Step(step)
		if err == nil {
			table.add(step, d)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("decide again on %s: %w", s.decisions, err)
	}
	return table.end()
}

// decisionTable has a row for each change of a pool's number of replicas.
type decisionTable struct {
	rows             *tabwriter.Writer
	last             map[string][2]int // recorded and now, by pool
	decided, differs int
}

func newDecisionTable(out io.Writer) *decisionTable {
	t := &decisionTable{rows: newTable(out),
		last: map[string][2]int{}}
	fmt.Fprintln(t.rows, "TIME\tPOOL\tRECORDED\tREASON\tDECIDED NOW\tREASON")
	return t
}

func (t *decisionTable) add(step autoscale.Row, d autoscale.Decision) {
	for i, was := range step.Decided {
		is := d.Pools[i]
		t.decided++
		if was.Replicas != is.Replicas {
			t.differs++
		}
		numbers := [2]int{was.Replicas, is.Replicas}
		if last, known := t.last[was.Pool]; known && last == numbers {
			continue
		}
		t.last[was.Pool] = numbers
		printf(t.rows, "%s\t%s\t%d\t%s\t%d\t%s\n", step.At.Format(time.RFC3339), was.Pool,
			was.Replicas, scalingReason(was.Reason), is.Replicas, scalingReason(is.Reason))
	}
}

func scalingReason(r autoscale.Reason) string {
	if r == autoscale.ReasonNone {
		return "–"
	}
	return string(r)
}

func (t *decisionTable) end() error {
	if err := t.rows.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(t.rows, "\n%d decisions, %d with another number of replicas\n", t.decided,
		t.differs)
	if err != nil {
		return err
	}
	return t.rows.Flush()
}
