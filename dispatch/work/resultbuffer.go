package work

// maxBuffer is the size of the largest buffer that is kept from line to line, in bytes.
const maxBuffer = 32 << 10

// ResultBuffer holds the memory of a result line, which a sender reuses from line to line.
type ResultBuffer struct {
	Head []byte    // of the result line, up to the answer's body
	Rest [2][]byte // the body, and what follows it
}

// Trim gives up the memory of a large line.
func (b *ResultBuffer) Trim() {
	if cap(b.Head) > maxBuffer {
		b.Head = nil
	}
}
