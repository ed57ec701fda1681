package batchfile

import "hash/maphash"

// idSet records which line first used a custom_id. It keeps 128 bits of keyed hash instead of the
// strings, so that its memory depends only on the number of lines and a user can't prepare a
// collision.
type idSet struct {
	low, high maphash.Seed
	lines     map[[2]uint64]uint32
}

func newIDSet() idSet {
	return idSet{low: maphash.MakeSeed(), high: maphash.MakeSeed(),
		lines: make(map[[2]uint64]uint32)}
}

// add records that line uses id. If an earlier line used it, add returns that line and false.
func (s *idSet) add(id []byte, line uint32) (first uint32, added bool) {
	key := [2]uint64{maphash.Bytes(s.low, id), maphash.Bytes(s.high, id)}
	if first, used := s.lines[key]; used {
		return first, false
	}
	s.lines[key] = line
	return line, true
}
