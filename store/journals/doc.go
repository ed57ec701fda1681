// Package journals has the part of journals that does not depend on their medium: which of them a
// process has open ([Writers]), which records of one are pending, who waits for them, and what its
// owner was notified of ([Log]). The medium decides when and where records are written: store/disk
// appends them to files, store/segments joins those of many journals in an object.
package journals
