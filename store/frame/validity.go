package frame

// Validity selects the valid records of a file, frame by frame from its start: those that no frame
// of a higher epoch precedes, and of several for one line the first. The epoch of a record counts
// like that of a fence, since a fence may have been damaged.
type Validity struct {
	begun   bool
	highest int64
	lines   map[uint32]struct{}
}

// Accept reports whether the next frame is a valid record.
func (v *Validity) Accept(f Frame) bool {
	if v.begun && f.Epoch < v.highest {
		return false
	}
	v.begun, v.highest = true, f.Epoch
	if f.Kind != Record {
		return false
	}
	if _, dup := v.lines[f.Record.Line]; dup {
		return false
	}
	if v.lines == nil {
		v.lines = make(map[uint32]struct{})
	}
	v.lines[f.Record.Line] = struct{}{}
	return true
}
