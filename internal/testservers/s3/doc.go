// Package s3 starts real object storages for tests: versitygw, and gofakes3, which has other
// quirks. Each has a free port of the loopback address, and ends with its test. A Proxy in front of
// one fails as storages and networks do.
package s3
