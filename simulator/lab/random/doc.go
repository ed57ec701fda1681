// Package random draws pools with traffic and batch jobs at random, so that a policy can be judged
// on scenarios that nobody has tuned it for.
//
// Distributions say what is drawn, with the source of each range. A Family narrows some of them. A
// Source draws the scenario of a number:
//
//	pool, err := random.Source{Seed: 1, Horizon: 30 * time.Minute}.Draw(17)
//
// The same source and number give the same scenario. Each property is drawn from a sequence of its
// own, so a change of one distribution does not change what others draw.
//
// A scenario is valid if the pool attains its objectives without batch work. Draw therefore runs
// the scenario without batch work, sets objectives relative to the latencies that it finds, and
// lowers the rate of pools that do not attain theirs.
package random
