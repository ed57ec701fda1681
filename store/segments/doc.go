// Package segments stores journals on object storage.
//
// A process writes the records of all its chunks into one object per commit, a segment, and then
// registers it. The registry, a database, checks the epochs of all chunks in the segment and
// records which ranges of it belong to which chunk. What is not registered does not exist. So a
// process that lost a chunk changes nothing, whatever it has written.
//
// # Parts
//
//   - [Objects]: bytes by name, such as an S3 bucket. Nothing is decided there: no conditional
//     writes, no order, no renames.
//   - [Registry]: which segments exist, the epochs of chunks, and what may be deleted.
//   - [Journals]: the group commit, reading, compaction and sweeping. It implements store.Journals.
//
// Package registrytest is the conformance suite of registries, and has one in memory.
package segments
