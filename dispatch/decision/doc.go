// Package decision keeps, for the last hour, what flow control saw and decided in each pool.
//
// A Recorder belongs to the goroutine that owns the planner. It takes a sample of all pools about
// once a second, and sooner when an allowance or its limiting reason changes. A sample is a row of
// numbers whose columns are described once, so that an hour of a pool fits into a megabyte. A
// History holds the samples and is safe for concurrent use; readers get them as Decisions.
//
// A pool's samples are held in two windows: all of the last ten minutes, and one in ten seconds of
// the last hour. Each window is bounded in bytes, so that pools with many runners keep fewer.
package decision
