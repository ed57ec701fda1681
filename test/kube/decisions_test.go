package kube_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/simulator"
)

// checkDecisions stops the daemon and checks that the simulator, on what the daemon has observed,
// comes to the same decisions. It returns the decided numbers of replicas as they changed.
func (l *loop) checkDecisions() (series []int) {
	l.t.Helper()
	l.stop()
	file, err := os.Open(l.cfg.Autoscale.Record)
	if err != nil {
		l.t.Fatal(err)
	}
	defer file.Close()
	again, err := simulator.NewRedecider(l.cfg.Autoscale)
	if err != nil {
		l.t.Fatal(err)
	}
	steps, differ := 0, 0
	err = autoscale.ReadRows(file, func(s autoscale.Row) error {
		d, err := again.Step(s)
		if err != nil {
			return err
		}
		steps++
		if got, want := text(l.t, d.Pools), text(l.t, s.Decided); got != want {
			if differ++; differ <= 3 {
				l.t.Errorf("at %v the daemon decided %s, the simulator %s", s.At, want, got)
			}
		}
		w := s.Decided[0]
		if len(series) == 0 || series[len(series)-1] != w.Replicas {
			series = append(series, w.Replicas)
			l.t.Logf("%7.0f s: %d replicas decided (%s), share of the harvest %.3f, a start "+
				"takes %.0f s", l.day.emulated(s.At.Sub(l.began)).Seconds(), w.Replicas,
				w.Reason, w.Terms.Share, l.day.emulated(w.Terms.ColdStart).Seconds())
		}
		return nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Logf("%d decisions, %d decided otherwise by the simulator", steps, differ)
	if !slices.Contains(series, l.day.Scenario.Pool.Max) || series[len(series)-1] != 0 {
		l.t.Errorf("the numbers of replicas were %v", series)
	}
	return series
}

func text(t *testing.T, of any) string {
	t.Helper()
	text, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
