// Package batchfile implements the format of batch files: the JSONL that a user uploads, the faults
// found in it, a compact index of its lines, and the lines of the output and error files.
//
// An upload is read once. While its bytes stream to the file store, a [Scanner] checks every line
// and writes one fixed-size [Line] record for each request into the index: the position of the
// line, of its body and of its custom_id, and the few numbers that planning needs. Nothing is
// decoded into Go values and nothing is encoded again: the body that is sent to a runner and the
// custom_id in the output are slices of the user's bytes.
//
// JSON is accepted as encoding/json.Valid accepts it, with two more rules: lines must be UTF-8, and
// values may nest at most 512 deep. json.go says why this is written by hand. One grammar, in
// syntax.go, serves values in memory and values that arrive in pieces.
//
// Memory is bounded by the limits on lines, not by the size of the file or of a line. A Scanner
// belongs to one goroutine; an [Index] may be read by many at once.
package batchfile
