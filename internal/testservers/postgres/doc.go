// Package postgres starts real PostgreSQL servers, and PgBouncer, for tests. A server has a free
// port of the loopback address and a temporary directory, and ends with its test. It does not sync
// its files: a test may kill it, but not the machine.
package postgres
