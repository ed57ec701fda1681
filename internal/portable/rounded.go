package portable

// Rounded returns x as it is, rounded to a float64 before anything is added to it. Use it for every
// product that is a term of a sum or difference:
//
//	portable.Rounded(a*b) + portable.Rounded(c*d)
//
// Without it, a compiler for a processor with fused multiply-add (arm64, for one) may compute
// a*b + c with one rounding instead of two, and the last bits would differ between processors.
// The Go specification promises that an explicit conversion prevents that; an assignment does not.
//
// A product that is only multiplied, divided, compared, stored in memory or returned from a
// function that is not inlined needs no call. TestNothingIsFused reads the assembly and reports
// each place where one is missing. Rounded is inlined and adds no instruction.
func Rounded(x float64) float64 { return float64(x) }
