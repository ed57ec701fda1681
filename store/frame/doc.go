// Package frame encodes the records of journals: frames with a checksum, between which a scanner
// skips damage.
package frame
