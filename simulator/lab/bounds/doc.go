// Package bounds compares policies with bounds that none of them can exceed: what oracles find, and
// what the errors of a fitted profile allow.
//
// A Comparison is one of package compare with both. Its Report is judged by the bounds: scores are
// shares of the best possible, deadlines that no policy can meet are left out, and a bound that a
// run exceeds is reported as wrong.
package bounds
