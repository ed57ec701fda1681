// Package report turns results of the simulator into what people read: figures over seeds, scores,
// goals met and missed, a table for the terminal, result.json, and an HTML page that needs no
// network.
//
// The caller runs policies, fills a Report with the results, and calls Judge once. What it knows
// beyond the runs, such as bounds that no policy can exceed, it adds as Additions.
// Everything else follows from that: the package is pure and writes only to the writers it is
// given, so the same results give the same bytes. A goal without a figure is not judged.
package report
