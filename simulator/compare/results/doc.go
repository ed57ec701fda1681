// Package results keeps results of simulations in a directory, so that work of hours can be stopped
// and continued. Each result has a key of all that it depends on, the version of the code included:
// that of the program, or what the code does to a few short pools.
package results
