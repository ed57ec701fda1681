package app_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/simulator"
)

// checkRecord checks that the simulator comes to the decisions that a daemon has recorded, and
// returns the numbers of replicas of the first pool as they changed.
func checkRecord(t *testing.T, cfg autoscale.Config) (series []int) {
	t.Helper()
	rows, err := os.ReadFile(cfg.Record)
	if err != nil {
		t.Fatal(err)
	}
	again, err := simulator.NewRedecider(cfg)
	if err != nil {
		t.Fatal(err)
	}
	text := func(of any) string {
		text, err := json.Marshal(of)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	err = autoscale.ReadRows(bytes.NewReader(rows), func(s autoscale.Row) error {
		decision, err := again.Step(s)
		if err != nil {
			return err
		}
		for i, w := range s.Decided {
			if got := decision.Pools[i]; text(got) != text(w) {
				t.Errorf("at %v the daemon decided %s, the simulator %s", s.At, text(w), text(got))
			}
		}
		if n := s.Decided[0].Replicas; len(series) == 0 || series[len(series)-1] != n {
			series = append(series, n)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return series
}
