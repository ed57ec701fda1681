package workload

import "slices"

// copyBits is the number of low bits of prefix names, which are the trace's own. The bits above it
// separate the copies of a trace, which share no prefixes. Names that are hashes wrap around and
// stay as distinct as hashes are.
const copyBits = 41

// offsetPrefixes adds an offset to the names of prefixes.
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
