package batchfile

import (
	"cmp"
	"math"
)

// Limits bound what an upload may hold. A zero field means its default.
type Limits struct {
	MaxLines int // requests; default 50,000, as OpenAI's
	// of the file; default 200 MiB; cut to 4 GiB, since places within a line take 32 bits
	MaxBytes int64
	// MaxLineBytes bounds a line, without its newline; default 16 MiB. The rest of a longer one is
	// skipped.
	MaxLineBytes int
	MaxFaults    int // faults kept for the user, all being counted; default 1,000
	MaxModels    int // distinct models; default 64, at most 65,535
}

func (l Limits) withDefaults() Limits {
	l.MaxLines = cmp.Or(l.MaxLines, 50_000)
	l.MaxBytes = min(cmp.Or(l.MaxBytes, 200<<20), math.MaxUint32)
	l.MaxLineBytes = cmp.Or(l.MaxLineBytes, 16<<20)
	l.MaxFaults = cmp.Or(l.MaxFaults, 1_000)
	l.MaxModels = min(cmp.Or(l.MaxModels, 64), math.MaxUint16)
	return l
}
