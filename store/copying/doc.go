// Package copying moves a stopped installation from one store to another: records, the bytes of
// files, and the journals of batches that have not ended.
//
// A copy makes the target equal to the source: it compares both, writes what differs, and removes
// what the source does not have. So it can be repeated after any cut. From its first write until
// its last comparison the target is marked as incomplete, and no daemon starts with it. Then the
// source is marked as moved, so that no batch is run twice. Files in storages of profiles stay
// where they are.
//
// [Check] compares the records of one store with its bytes.
package copying
