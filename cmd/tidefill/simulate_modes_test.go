package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// A flag that a mode does not use is an error, which names the modes that use it. Nothing runs.
func TestSimulateRefusesFlagsOfOtherModes(t *testing.T) {
	for given, want := range map[string]string{
		"s1.yaml --family idle":       "--family does nothing with SCENARIO.yaml; it",
		"s1.yaml --only 3":            "to --random, --random --explain, --random --write\n",
		"s1.yaml --horizon 1h":        "--horizon does nothing",
		"s1.yaml --write x":           "it belongs to --random --write\n",
		"s1.yaml --no-reference":      "--no-reference does nothing",
		"s1.yaml -j 1":                "--jobs does nothing",
		"s1.yaml --oracle-sample 1":   "--oracle-sample does nothing",
		"s1.yaml --profile x":         "it belongs to --compare\n",
		"s1.yaml --explain 9m --json": "--json does nothing with SCENARIO.yaml --explain",
		"--minimize 3":                "it belongs to --random --minimize\n",

		"--random 1 --compare x":               "--compare does nothing with --random;",
		"--random 1 --decisions x":             "--decisions does nothing with --random;",
		"--random 1 --format csv":              "--format does nothing",
		"--random 1 --trace x":                 "--trace does nothing",
		"--random 1 --profile x":               "--profile does nothing",
		"--random 1 --oracle-results x":        "--oracle-results does nothing",
		"--random 1 --oracles":                 "--oracles does nothing",
		"--random 1 --events":                  "--events does nothing",
		"--random 1 --baselines":               "--baselines does nothing",
		"--random 1 --seeds 1":                 "--seeds does nothing",
		"--random 3 --write x --minimize 3":    "--minimize does nothing with --random --write;",
		"--random 3 --write x --explain 3m":    "--explain does nothing with --random --write;",
		"--random 3 --minimize 3 --explain 3m": "--explain does nothing with --random --minimize;",
		"--random 3 --minimize 3 --only 3":     "--only does nothing with --random --minimize;",
		"--random 3 --write x --no-reference":  "it belongs to --random\n",

		"--compare x --out y":               "--out does nothing with --compare;",
		"--compare x --explain 3m":          "--explain does nothing with --compare;",
		"--compare x --decisions y":         "--compare does nothing with --decisions;",
		"--decisions x --policy fixed":      "--policy does nothing with --decisions;",
		"--decisions x --seed 3":            "--seed does nothing with --decisions;",
		"--compare x --policy a --policy b": "--compare takes one --policy; there are 2",
		"--random 0":                        "--random is 0, want 1 to 10000",
		"--random 1 --minimize 0":           "--minimize is 0; numbers begin at 1",
	} {
		got := must(t, exitUsage, append([]string{"simulate"}, strings.Fields(given)...)...)
		if !strings.Contains(got.errors, want) || got.out != "" {
			t.Errorf("%s: want %q, got %s%s", given, want, got.errors, got.out)
		}
	}
}

func TestEveryFlagOfSimulateHasItsModes(t *testing.T) {
	flags := map[string]bool{"help": true}
	simulateCommand().LocalFlags().VisitAll(func(f *pflag.Flag) {
		flags[f.Name] = true
		if simulateFlags[f.Name] == 0 {
			t.Errorf("--%s is missing in simulateFlags", f.Name)
		}
	})
	for name := range simulateFlags {
		if !flags[name] {
			t.Errorf("simulateFlags has --%s, which is no flag", name)
		}
	}
}
