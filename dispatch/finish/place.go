package finish

import "github.com/tidefill/tidefill/store"

// place is where a result is in its chunk's journal. Its zero value is none. A batch has one for
// each line while its result files are written, so it is packed into 16 bytes.
type place struct {
	offset int64
	length uint32
	chunk  uint32 // and failedBit
}

const failedBit = 1 << 31

func placeOf(chunk int, at store.Location, failed bool) place {
	p := place{at.Offset, at.Length, uint32(chunk)}
	if failed {
		p.chunk |= failedBit
	}
	return p
}

func (p place) none() bool { return p.length == 0 }

func (p place) failed() bool { return p.chunk&failedBit != 0 }

func (p place) chunkIndex() int { return int(p.chunk &^ failedBit) }

func (p place) location() store.Location {
	return store.Location{Offset: p.offset, Length: p.length}
}
