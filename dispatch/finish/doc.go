// Package finish makes results durable and ends batches.
//
//   - [Recorder] writes results to the journals of their chunks, and counts them once they are
//     durable. While a journal can't be written it holds all starts.
//   - [Finisher] marks complete chunks done, several in one step.
//   - [Finalizer] finds all results of a batch, writes them to its files in input order, and ends
//     it. It runs lines again whose results were lost by damage to the files. It delivers the files
//     to the bucket that the batch names before the batch ends.
//   - [Sweeper] removes the journals of batches that ended long ago.
package finish
