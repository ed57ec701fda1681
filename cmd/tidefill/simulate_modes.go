package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// simulateMode is one thing that simulate does.
type simulateMode struct {
	name  string   // the arguments that choose it
	flags []string // that it uses
}

var (
	compareMode = &simulateMode{"SCENARIO.yaml", []string{"policy", "config", "set", "baselines",
		"seed", "seeds", "trace", "format", "out", "json", "events"}}
	explainMode = &simulateMode{"--explain", []string{"explain", "terms", "policy", "config", "set",
		"seed", "trace", "format"}}
	recordingMode = &simulateMode{"--compare", []string{"compare", "profile", "policy", "config",
		"set", "seed", "json"}}
	whatIfMode = &simulateMode{"--what-if", []string{"what-if", "policy", "config", "set", "seed",
		"seeds", "trace", "format", "out", "json"}}
	replayMode = &simulateMode{"--recording", []string{"recording", "since", "what-if", "profile",
		"policy", "config", "set", "seed", "out", "json"}}
	decisionsMode = &simulateMode{"--decisions", []string{"decisions", "config", "set"}}

	simulateModes = []*simulateMode{compareMode, explainMode, whatIfMode, replayMode, recordingMode,
		decisionsMode}
)

// simulateModeOf returns the mode that the given flags choose.
func simulateModeOf(flags *pflag.FlagSet) *simulateMode {
	switch {
	case flags.Changed("decisions"):
		return decisionsMode
	case flags.Changed("compare"):
		return recordingMode
	case flags.Changed("recording"):
		return replayMode
	case flags.Changed("what-if"):
		return whatIfMode
	case flags.Changed("explain"):
		return explainMode
	}
	return compareMode
}

// check refuses flags that the mode does not use.
func (m *simulateMode) check(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		var users []string
		for _, other := range simulateModes {
			if slices.Contains(other.flags, f.Name) {
				users = append(users, other.name)
			}
		}
		if err == nil && len(users) > 0 && !slices.Contains(m.flags, f.Name) {
			err = usageErrorf("--%s does nothing with %s; it belongs to %s", f.Name, m.name,
				strings.Join(users, ", "))
		}
	})
	return err
}
