// Package claim cuts batches into chunks, and claims chunks for this process.
//
//   - [Admitter] decides the order of a new batch's lines and cuts it into chunks.
//   - [Claimer] claims chunks, several at a time for a fast pool, reads their lines, and gives
//     chunks back with the results that they have. Canaries hold back their batch's other lines.
//
// Only the leader of a model claims its chunks. A chunk that was claimed and not read, or of which
// no line is in flight, can be given back at any time.
package claim
