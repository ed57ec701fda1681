// Package scenario is the file that says what a simulation is about: the pool,
// its interactive traffic and what users are promised of it, and the batch jobs.
//
// The package holds values and checks them. Files are read by the caller, since
// nothing in the simulator touches a disk; the field tags are the file's keys.
package scenario
