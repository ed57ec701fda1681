// Package batchfile is the format of batch files: the JSONL a user uploads, the faults found in it,
// the compact index of its lines, and the lines of the output and error files.
//
// An upload is read once. While its bytes stream to the file store, a [Scanner] checks every line
// and writes one fixed-size [Line] record per request into the index: where the line lies, where
// its body and custom_id lie in it, and the few numbers a planner needs. Nothing is decoded into Go
// values and nothing is ever encoded again: what goes upstream, and the custom_id that comes back,
// are slices of the user's own bytes.
//
// JSON is judged as encoding/json.Valid judges it, with two rules more: lines must be UTF-8, and
// values may nest 512 deep at most, so hostile input can't exhaust a stack.
//
// Memory is bounded by the longest line and by the limit on lines, never by the size of the file. A
// Scanner belongs to one goroutine; an [Index] may be read by many at once.
package batchfile
