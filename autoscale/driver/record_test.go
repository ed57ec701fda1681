package driver

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/autoscale"
)

// steps returns how the steps of a file begin.
func steps(t *testing.T, path string) (begins []autoscale.Begin, recalled int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	err = autoscale.ReadRows(bytes.NewReader(text), func(s autoscale.Row) error {
		begins = append(begins, s.Begin)
		recalled += len(s.Recalled)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return begins, recalled
}

// A full file is put aside, and the next one begins with what was learned.
func TestRecordRotates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions.jsonl")
	r := newRecord(autoscale.Config{Record: path})
	r.limit = 1
	at := time.Now()
	learned := func() []autoscale.PoolLearned { return []autoscale.PoolLearned{{Pool: "night"}} }
	for range 3 {
		if err := r.write(autoscale.State{At: at}, autoscale.Decision{}); err != nil {
			t.Fatal(err)
		}
		if err := r.rotate(at, learned); err != nil {
			t.Fatal(err)
		}
	}
	if begins, recalled := steps(t, path+".1"); len(begins) != 1 ||
		begins[0] != autoscale.FleetContinued || recalled != 1 {
		t.Errorf("the file before has %v with %d recalled", begins, recalled)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the full file is still there")
	}
}

// A daemon that starts again appends to the file, and begins anew.
func TestRecordGoesOnAfterARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions.jsonl")
	for range 2 {
		r := newRecord(autoscale.Config{Record: path})
		r.handedOver([]autoscale.Recalled{{PoolLearned: autoscale.PoolLearned{Pool: "night"}}})
		for range 2 {
			if err := r.write(autoscale.State{}, autoscale.Decision{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.close(); err != nil {
			t.Fatal(err)
		}
		cut, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		// It was killed while it wrote.
		if _, err := cut.WriteString(strings.Repeat(`{"Version":1,`, 10_000)); err != nil {
			t.Fatal(err)
		}
		cut.Close()
	}
	begins, recalled := steps(t, path)
	if len(begins) != 4 || begins[0] != autoscale.FleetStarted || begins[1] != "" ||
		begins[2] != autoscale.FleetStarted || recalled != 2 {
		t.Errorf("the file has %q with %d recalled", begins, recalled)
	}
}
