package main

import (
	"math/bits"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// simulateMode is what simulate does. Its values are bits, so that a set of modes is one too.
type simulateMode uint

// The modes, in the order of simulateModeNames.
const (
	reportScenarios simulateMode = 1 << iota
	explainScenarios
	judgePools
	explainPools
	writePools
	minimizePool
	compareRecording
	decideAgain
)

// Sets of modes.
const (
	ofScenarios = reportScenarios | explainScenarios
	ofPools     = judgePools | explainPools | writePools | minimizePool
	ofRuns      = ofScenarios | ofPools | compareRecording
)

// simulateModeNames are the arguments that choose the modes.
var simulateModeNames = []string{"SCENARIO.yaml", "SCENARIO.yaml --explain", "--random",
	"--random --explain", "--random --write", "--random --minimize", "--compare", "--decisions"}

// simulateFlags are the modes that use each flag.
var simulateFlags = map[string]simulateMode{
	"policy": ofRuns,
	"config": ofRuns | decideAgain,
	"set":    ofRuns | decideAgain,
	"seed":   ofRuns,
	"json":   reportScenarios | judgePools | compareRecording,
	"out":    reportScenarios | ofPools,

	"explain":        explainScenarios | explainPools,
	"trace":          ofScenarios,
	"format":         ofScenarios,
	"seeds":          reportScenarios,
	"baselines":      reportScenarios,
	"oracles":        reportScenarios,
	"oracle-runs":    reportScenarios | judgePools,
	"oracle-seeds":   reportScenarios,
	"oracle-results": reportScenarios,
	"events":         reportScenarios,

	"random":        ofPools,
	"family":        ofPools,
	"horizon":       ofPools,
	"traces":        ofPools,
	"metrics":       ofPools,
	"only":          ofPools &^ minimizePool,
	"jobs":          ofPools &^ minimizePool,
	"no-reference":  judgePools,
	"oracle-sample": judgePools,
	"write":         writePools,
	"minimize":      minimizePool,

	"compare":   compareRecording,
	"profile":   compareRecording,
	"decisions": decideAgain,
}

// simulateModeOf returns the mode that the given flags choose.
func simulateModeOf(flags *pflag.FlagSet) simulateMode {
	switch {
	case flags.Changed("random") && flags.Changed("write"):
		return writePools
	case flags.Changed("random") && flags.Changed("minimize"):
		return minimizePool
	case flags.Changed("random") && flags.Changed("explain"):
		return explainPools
	case flags.Changed("random"):
		return judgePools
	case flags.Changed("decisions"):
		return decideAgain
	case flags.Changed("compare"):
		return compareRecording
	case flags.Changed("explain"):
		return explainScenarios
	}
	return reportScenarios
}

// checkSimulateFlags refuses flags that the mode does not use.
func checkSimulateFlags(cmd *cobra.Command, mode simulateMode) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		users, listed := simulateFlags[f.Name]
		if err == nil && listed && users&mode == 0 {
			err = usageErrorf("--%s does nothing with %s; it belongs to %s", f.Name, mode, users)
		}
	})
	return err
}

func (m simulateMode) String() string {
	var names []string
	for ; m != 0; m &= m - 1 {
		names = append(names, simulateModeNames[bits.TrailingZeros(uint(m))])
	}
	return strings.Join(names, ", ")
}
