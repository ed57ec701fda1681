package workload

import "slices"

// The high bits of prefix names separate traffic that does not share prefixes: spaceBits the
// streams, copyBits the copies within one. The low bits are the trace's own. Names that are hashes
// wrap around and stay as distinct as hashes are.
const (
	spaceBits = 56
	copyBits  = 41
)

// namespace separates the prefixes of a stream from those of streams with other numbers, from 0 to
// 255, so that two services share none.
func namespace(s Stream, number int) Stream { return offsetPrefixes(s, uint64(number)<<spaceBits) }

func offsetPrefixes(s Stream, offset uint64) Stream {
	if offset == 0 {
		return s
	}
	return mapArrivals(s, func(a *Arrival) {
		a.Prefix = slices.Clone(a.Prefix)
		for i := range a.Prefix {
			a.Prefix[i] += offset
		}
	})
}
