// Package store documents the contract between Tidefill and a store, and holds its types and
// errors. The backends are in the packages below. Two are registered for the configuration:
// embedded (of sqlite and disk) and cluster (of postgres with s3 or disk, and redis).
//
// The contract has one interface for each kind of state. Packages api and dispatch declare the
// methods that they call in interfaces of their own. A registered backend returns a [Backend],
// which has all of these groups. They may be of different systems:
//
//   - Records: [Files], [Uploads], [UploadParts], [Batches], [BatchLists], [Changes], [References],
//     [LearnedStates], [PoolHistory], [Ledger], [Keys], [KeyUses], [Notices], [Status], [Portable].
//     Small rows, compare-and-set, listings by cursor. There is no row for each line: a batch of
//     50,000 lines is one row and some dozens of chunks.
//   - Claims: [Owners], [Claims], [Tallies], [Locks], [Leads]. They decide who works on what.
//   - Progress: [ProgressBoard], for users.
//   - Bytes: [Blobs], written once as a stream and visible when committed, and [Spool].
//   - Results: [Journals], appended and checksummed.
//
// # Truth and lag
//
// The committed records of the journals are the only truth about results. A restart needs nothing
// else to know which lines are done. Everything else is derived from them and may lag: the tally of
// a chunk until it is finished, and the progress of a batch by the interval at which dispatchers
// post it. A journal declares by [Durability] the time that a record may wait for its commit.
//
// # Fencing
//
// A dispatcher registers as an owner and renews its lease. Each claim has an epoch, which grows
// with every claim of the same chunk, lock or name. Opening a journal at an epoch fences the
// writers of lower epochs: they are refused with [ErrFenced], and readers ignore the records that
// they may still have written. So a line has one result, whatever a suspended or partitioned
// process does.
//
// # Time
//
// The contract takes no clock. Leases end by the clock of the backend: that of its server, or that
// of the machine, which tests replace. [OpenOptions].Expiry is the clock by which files and uploads
// expire. A backend stores times in UTC with microseconds. It compares the times of two machines
// only for the end of leases, which fencing makes safe.
//
// # Contexts
//
// Every method that may wait takes a context and returns when it ends. Nothing is left locked or
// half written then, but a write may have happened.
//
// Package storetest is the conformance suite.
package store
