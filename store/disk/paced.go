package disk

// pace is how much of a blob is left to the page cache before the medium is asked to begin with it:
// large enough for full speed, small enough that little is left to wait for at the end.
const pace = 8 << 20

// pacedFile starts writeback while a large blob is still being written, so that the medium works
// along with whoever produces the bytes, and the sync at the end is short. It leaves the reserve of
// the medium alone.
type pacedFile struct {
	file
	reserve        *reserve
	written, begun int64
}

func (p *pacedFile) Write(b []byte) (int, error) {
	if err := p.reserve.room(int64(len(b))); err != nil {
		return 0, err
	}
	n, err := p.file.Write(b)
	p.written += int64(n)
	if f, ok := p.file.(osFile); ok && p.written-p.begun >= pace {
		startWriteback(f.File, p.begun, p.written-p.begun)
		p.begun = p.written
	}
	return n, err
}
