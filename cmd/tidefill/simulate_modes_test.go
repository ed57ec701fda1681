package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// A flag that a mode does not use is an error, which names the modes that use it. Nothing runs.
func TestSimulateRefusesFlagsOfOtherModes(t *testing.T) {
	for given, want := range map[string]string{
		"s1.yaml --profile x":               "it belongs to --recording, --compare\n",
		"s1.yaml --explain 9m --json":       "--json does nothing with --explain",
		"s1.yaml --explain 9m --seeds 2":    "it belongs to SCENARIO.yaml, --what-if\n",
		"s1.yaml --oracles":                 "unknown flag: --oracles",
		"--random 3":                        "unknown flag: --random",
		"--compare x --out y":               "--out does nothing with --compare;",
		"--compare x --explain 3m":          "--explain does nothing with --compare;",
		"--compare x --decisions y":         "--compare does nothing with --decisions;",
		"--decisions x --policy fixed":      "--policy does nothing with --decisions;",
		"--decisions x --seed 3":            "--seed does nothing with --decisions;",
		"--compare x --policy a --policy b": "--compare takes one --policy; there are 2",
	} {
		got := must(t, exitUsage, append([]string{"simulate"}, strings.Fields(given)...)...)
		if !strings.Contains(got.errors, want) || got.out != "" {
			t.Errorf("%s: want %q, got %s%s", given, want, got.errors, got.out)
		}
	}
}

func TestEveryFlagOfSimulateHasItsModes(t *testing.T) {
	used := map[string]bool{"help": true}
	for _, mode := range simulateModes {
		for _, name := range mode.flags {
			used[name] = true
			if simulateCommand().Flags().Lookup(name) == nil {
				t.Errorf("%s uses --%s, which is no flag", mode.name, name)
			}
		}
	}
	simulateCommand().LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !used[f.Name] {
			t.Errorf("no mode uses --%s", f.Name)
		}
	})
}
