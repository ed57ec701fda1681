// Package recording stores what a simulation needs of the traffic of a live pool: the batch jobs
// and the sizes of their lines, how the engines served them, and the readings. It stores no prompt,
// no answer, no custom_id, no name of a tenant or model and no address. Batches, models and runners
// are numbers.
//
// A recording is a file of JSON objects, one per row. The first is the Header, each further one an
// Entry; docs/recordings.md describes the keys. A Recorder converts the planner's events and
// readings to entries. It takes part in no decision and delays none: entries that the disk does not
// take in time are dropped, and the file counts them. A File limits the size of a recording.
package recording
