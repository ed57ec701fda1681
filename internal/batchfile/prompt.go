package batchfile

import (
	"encoding/binary"
	"math/bits"
)

// prefixBytes is the size of the part of a prompt that the prefix hash covers. It is some 250
// tokens, well above the block sizes of engines' prefix caches (16 to 64 tokens). So lines with
// equal hashes share blocks worth keeping.
const prefixBytes = 1 << 10

// mix adds b to a 64-bit hash, eight bytes at a time, by the full product of two words as wyhash
// does. Indexes store its values, so a change of the function needs a new indexHeader. It never
// returns 0.
func mix(hash uint64, b []byte) uint64 {
	const k0, k1 = 0xa0761d6478bd642f, 0xe7037ed1a0b428db
	hash ^= k0 ^ uint64(len(b))
	for ; len(b) >= 8; b = b[8:] {
		hash = fold(hash^binary.LittleEndian.Uint64(b), k1)
	}
	var tail [8]byte
	copy(tail[:], b)
	hash = fold(hash^binary.LittleEndian.Uint64(tail[:]), k0)
	return max(hash, 1)
}

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}
