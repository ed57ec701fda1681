// Package gpuhours computes the fewest replica-hours that meet every deadline, for a scaler that
// knows all of the future, whose replicas start and end at once and may be fractions.
//
// Batch work is a fluid, and one job may use all replicas, so earliest deadline first is optimal.
// The work can be done in time exactly if, for every release a and every later deadline d, the work
// released from a on and due until d fits into the harvest between them. What is left to choose is
// how much harvest to buy between two such instants: a linear program. It is kept small by merging
// purchases of a segment that bring almost the same per hour, and by adding conditions only when a
// solution violates them. The solver is gonum's simplex.
package gpuhours
