package disk

// pace is the number of written bytes after which writeback is started. It is large enough for full
// speed, and small enough for a short sync at the end.
const pace = 8 << 20

// pacedFile starts writeback while a large blob is still being written, so that the medium works in
// parallel with the producer of the bytes, and the sync at the end is short. It does not use the
// reserve.
type pacedFile struct {
	file
	reserve          *reserve
	written, started int64
}

func (p *pacedFile) Write(b []byte) (int, error) {
	if err := p.reserve.check(int64(len(b))); err != nil {
		return 0, err
	}
	n, err := p.file.Write(b)
	p.written += int64(n)
	if f, ok := p.file.(osFile); ok && p.written-p.started >= pace {
		startWriteback(f.File, p.started, p.written-p.started)
		p.started = p.written
	}
	return n, err
}
