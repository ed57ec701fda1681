// Package experiment runs simulations: comparisons of policies over scenarios and seeds, oracles
// and their cached results, the search of parameters, the comparison with a recording of a real
// pool, and the fit of profiles to measured iterations.
//
// The package drives package simulator, which is pure. It reads and writes files, measures real
// time for progress reports, and spreads runs over all processors; the results do not depend on the
// order in which runs finish.
//
// A Scenario is a scenario file with all the files it names. Candidates are the policies to try,
// built from a Configuration. A Comparison runs every candidate in every scenario with every seed:
//
//	scenarios, err := experiment.OpenScenarios(files, experiment.Trace{})
//	...
//	candidate, err := experiment.Configuration{}.Candidate("fixed,per_runner=16")
//	...
//	comparison := experiment.Comparison{Scenarios: scenarios, Seeds: []uint64{1},
//		Candidates: []experiment.Candidate{candidate}}
//	result, err := comparison.Run(ctx)
package experiment
