package batchfile

import (
	"cmp"
	"math"
)

// Limits bounds the content of an upload. A zero field means its default.
type Limits struct {
	MaxLines int // requests; default 50,000, as OpenAI's
	// MaxBytes bounds the file; default 200 MiB; at most 4 GiB, because positions within a line
	// have 32 bits.
	MaxBytes int64
	// MaxLineBytes bounds a line, without its newline; default 16 MiB. The rest of a longer line is
	// skipped.
	MaxLineBytes int
	MaxFaults    int // faults kept; all are counted; default 1,000
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
