// Package scenario defines the file that describes a simulation: the pool, its interactive traffic
// and its SLO, the batch jobs, faults and goals.
//
// The package holds values and checks them. The caller reads files, since nothing in the simulator
// touches a disk. The field tags are the file's keys.
package scenario
