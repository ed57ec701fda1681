// Package recording keeps what a simulation needs to know of a day at a live pool: what batch work
// came and how large its lines were, how the engines took them, and what readings showed. It never
// holds a prompt or an answer, a custom_id, a tenant's or a model's name, or an address: batches,
// models and runners are numbers.
//
// A recording is a file of JSON objects, one a line. The first is the Header, each further one an
// Entry (docs/recordings.md has the keys). A Recorder makes entries of the planner's events and of
// readings; it belongs to nobody's decisions and slows nobody down: what the medium can't take in
// time is left out, and the file says so. A File bounds what is kept.
package recording
