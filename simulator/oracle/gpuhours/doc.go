// Package gpuhours is the oracle of scaling: the least replica-hours that meet every deadline,
// known to one who sees the whole story beforehand, has replicas come and go at once, and may have
// parts of one.
//
// Batch work is a fluid of which one job may take all there is, so the earliest deadline first is
// best, and work can be done in time exactly if, for every release a and every deadline d after it,
// what is released from a on and due until d fits into the harvest between them. What is left to
// choose is how much harvest to buy in each stretch between two such instants: a linear program. It
// is kept small by merging purchases of a stretch that bring as much per hour, and by adding
// conditions only when an answer breaks them. The solver is gonum's simplex.
package gpuhours
