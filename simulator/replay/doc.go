// Package replay makes a day to simulate of one that a daemon has recorded, so that the simulator
// can be held against what happened.
//
// What is known is told again as it was: jobs, when they came and how large their lines were.
// Interactive requests are not recorded one by one. How many came in a stretch of time follows from
// the engines' own count of first tokens less our own lines, and their sizes from the engines'
// counters of tokens, less ours; when within the stretch they came, and how sizes spread about
// their mean, is drawn.
package replay
