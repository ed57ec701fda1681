package main

import (
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/registry"
)

// recordedDay is a file of a pool whose number was decided by the policy static.
func recordedDay(t *testing.T) string {
	t.Helper()
	cfg := autoscale.DefaultConfig()
	cfg.Policy = "static"
	fleet, err := autoscale.NewFleet(cfg)
	if err != nil {
		t.Fatal(err)
	}
	pool := autoscale.NewPool(registry.Pool{Name: "night", Max: 3,
		Role: registry.RoleBatch}, flowcontrol.DefaultConfig())
	var text []byte
	for i := range 3 {
		step := autoscale.Row{State: autoscale.State{
			At:    time.Date(2026, 11, 23, 4, i, 0, 0, time.UTC),
			Pools: []autoscale.PoolState{pool}}}
		if i == 0 {
			step.Begin = autoscale.FleetStarted
		}
		step.Decided = fleet.Step(step.At, step.State).Pools
		if text, err = step.Append(text); err != nil {
			t.Fatal(err)
		}
	}
	return string(text)
}

func TestSimulateDecidesAgain(t *testing.T) {
	day := recordedDay(t)
	file := writeFile(t, "decisions.jsonl", day)
	for want, args := range map[string][]string{
		"3 decisions, 0 with another number of replicas": {"--set", "autoscale.policy=static"},
		"3 decisions, 3 with another number of replicas": {},
		"night  3         fixed   0            –":        {},
	} {
		got := command(t, append([]string{"simulate", "--decisions", file}, args...)...)
		if got.status != exitOK || !strings.Contains(got.out, want) {
			t.Errorf("%v: status %d, %s%s; want %q", args, got.status, got.out, got.errors, want)
		}
	}
	_, rest, _ := strings.Cut(day, "\n")
	for want, file := range map[string]string{
		"its beginning is missing":      writeFile(t, "rest.jsonl", rest),
		"row 1: it has the version 0":   writeFile(t, "other.jsonl", "{}\n"),
		"no such file or directory":     file + ".none",
		"takes no scenario, and no --p": "",
	} {
		args := []string{"simulate", "--decisions", file}
		if file == "" {
			args = []string{"simulate", "--decisions", "x", "s1.yaml"}
		}
		if got := command(t, args...); got.status == exitOK || !strings.Contains(got.errors, want) {
			t.Errorf("%v: status %d, %s; want %q", args, got.status, got.errors, want)
		}
	}
}
