// Package testservers runs the programs that tests need as child processes: servers of other
// projects, of which the packages below it know how to start one each, and those of this one. They
// listen on loopback and end with their test.
package testservers
