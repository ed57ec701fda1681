package batchfile

import "bytes"

const dataURL = ";base64,"

// dataURLs counts the base64 bytes of the data URLs in a value that arrives in pieces. An image
// costs an engine some hundred tokens whatever its size, so an estimate of tokens from bytes must
// exclude them.
type dataURLs struct {
	bytes   int
	matched int  // length of the prefix of dataURL that was read last
	pending int  // bytes of base64 before the closing quote was read
	inside  bool // in base64
}

func (d *dataURLs) write(p []byte) {
	for len(p) > 0 {
		if d.inside {
			end := bytes.IndexByte(p, '"')
			if end < 0 {
				d.pending += len(p)
				return
			}
			*d = dataURLs{bytes: d.bytes + d.pending + end}
			p = p[end:]
			continue
		}
		if d.matched == 0 {
			i := bytes.IndexByte(p, dataURL[0])
			if i < 0 {
				return
			}
			p = p[i:]
		}
		switch p[0] {
		case dataURL[d.matched]:
			d.matched++
		case dataURL[0]:
			d.matched = 1
		default:
			d.matched = 0
		}
		if p = p[1:]; d.matched == len(dataURL) {
			d.inside = true
		}
	}
}
