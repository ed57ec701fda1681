// Package postgres stores batches, files, claims, progress and idempotency keys in PostgreSQL, for
// any number of processes.
//
// # Round trips
//
// A method is one transaction, and all its statements are sent together: the server begins, runs
// and commits it without the client in between. So most methods cost one round trip, and a process
// that is suspended or cut off holds no lock. A statement whose condition does not hold ends the
// transaction (see tidefill_require in the first migration). Nothing depends on the state of a
// session, so PgBouncer may pool by transaction.
//
// # Isolation
//
// Transactions are READ COMMITTED. Where two of them must exclude each other although they write
// different rows, the first statement takes an advisory lock of the name, and the next one, whose
// snapshot is younger than the lock, decides. Deadlocks and failed serializations are tried again a
// few times.
//
// # Clock
//
// Leases and retention follow the clock of the server. Times in objects, such as the creation of a
// batch, come from their callers.
//
// # Changes
//
// A change carries the id of its transaction, and a cursor is the snapshot of its reader: what the
// snapshot does not see is new. So no change is missed, in whatever order transactions commit, and
// none waits for a transaction that lasts. Ids of transactions are compared only within one
// timeline of the server, see tidefill_timeline.
//
// A goroutine of the DB notifies other processes after changes, and [DB.WakeOnChange] hears those
// of others on a connection of its own. Notifications only save the time to the next question.
//
// # Errors
//
// A server that can't be reached, that restarts or accepts no writes is store.ErrUnavailable. A
// write whose answer is lost may have happened and is not repeated here: callers repeat it, and the
// contract makes that safe.
package postgres
