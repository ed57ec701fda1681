// Package compare simulates policies and compares them: over scenarios and seeds, and with what a
// daemon has recorded of a real pool.
//
// The package drives package simulator, which is pure. It reads and writes files, measures real
// time for progress reports, and spreads runs over all processors; the results do not depend on the
// order in which runs finish.
//
// A Scenario is a scenario file with all the files it names. Candidates are the policies to try,
// built from a Configuration. A Comparison runs every candidate in every scenario with every seed:
//
//	scenarios, err := compare.OpenScenarios(files, compare.Trace{})
//	...
//	candidate, err := compare.Configuration{}.Candidate("fixed,per_runner=16")
//	...
//	comparison := compare.Comparison{Scenarios: scenarios, Seeds: []uint64{1},
//		Candidates: []compare.Candidate{candidate}}
//	result, err := comparison.Run(ctx)
package compare
