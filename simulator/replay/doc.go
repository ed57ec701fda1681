// Package replay makes traffic to simulate of a daemon's recording, so that the simulator can be
// compared with what happened.
//
// Jobs are replayed as recorded: when they were submitted and how large their lines were.
// Interactive requests are not recorded one by one. Their number in an interval follows from the
// engines' own count of first tokens minus that of batch lines, and their sizes from the engines'
// token counters, minus those of batch lines. Their times within the interval and the distribution
// of sizes about the mean are drawn.
package replay
