package openai

import (
	"fmt"
	"io"
)

// streamOverhead is the largest size of a stream, as a multiple of that of the answer. A token of
// four bytes comes in an event of some hundred, or some thousand with alternatives.
const streamOverhead = 64

// limitedStream ends a stream that is longer than any answer needs: one of comments, or of events
// without content, would be read at full speed until the request times out.
type limitedStream struct {
	from io.Reader
	left int64
}

func limitStream(from io.Reader, answer int64) *limitedStream {
	return &limitedStream{from, streamOverhead * answer}
}

func (l *limitedStream) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("%w: a stream of %d times as many bytes as an answer may have",
			errTooLarge, streamOverhead)
	}
	n, err := l.from.Read(p)
	l.left -= int64(n)
	return n, err
}
