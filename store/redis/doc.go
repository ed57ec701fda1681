// Package redis keeps in Redis what processes share for speed and what may be lost: it implements
// package live and [store.ProgressBoard].
//
// # Keys
//
// All keys begin with the prefix of the cluster and expire. Each call touches keys of which one
// hash tag decides the node, or sends one pipeline, so it is one round trip also on Redis Cluster:
//
//	PREFIX:snapshots:{KIND}   hash: name -> snapshot, with its time by the clock of Redis
//	PREFIX:progress:{BATCH}   hash: node -> its last post
//	PREFIX:window:{KEY}       when the window is empty again, by the clock of Redis
//	PREFIX:events             channel: events of all topics
//
// # Away
//
// A call takes no longer than [Config].Timeout. After a call that failed nothing is sent until a
// ping in the background succeeds, so that Redis delays a handful of calls when it goes away, and
// none while it is away. Those calls return ErrUnavailable, or do without: progress goes through
// another board, windows count the requests of this process, events reach this process only.
package redis
