package batchfile

import (
	"fmt"
	"math"
)

// jsonStream checks one JSON value that arrives in pieces of any size, and reports the positions of
// its outer values. It accepts what skipValue accepts, and rejects the rest at the same byte with
// the same reason. Its memory does not grow with the value.
type jsonStream struct {
	on         streamEvents
	limit      int      // of nesting
	wantObject bool     // the outermost value must be an object
	arrays     []uint64 // one bit for each open container; 1: an array

	state state
	depth int     // number of open containers
	piece []byte  // the current piece
	at    int     // bytes before the current piece
	from  int     // position after the last opening bracket or comma
	key   excerpt // the literal of the key that was read last

	literal   string // the missing rest of true, false or null
	literalAt int
	hexDigits int // number of missing digits of \uXXXX

	fault   error // the first one
	faultAt int
}

// streamEvents receives the values in at most eventDepth containers. Positions count from the first
// byte of the stream.
type streamEvents interface {
	// begin reports the first byte of a value in depth containers, and the literal of its key,
	// which is valid only during the call. The key is nil if the value is not a member, or if the
	// literal is too long to be kept.
	begin(depth int, key []byte, first byte, at int)
	// end reports the position after the value.
	end(depth int, at int)
}

const (
	// eventDepth includes the elements of a member of the body.
	eventDepth = 3
	// keyBytes suffices for the literal of every known key, even if each character is escaped.
	keyBytes = 192
)

type state uint8

const (
	wantValue state = iota
	wantFirstElement
	wantFirstKey
	wantKey
	wantColon
	wantNext // ',' or the end of the container
	wantNothing
	inString
	inEscape
	inHex
	inLiteral
	afterMinus
	afterZero
	inInteger
	afterPoint
	inFraction
	afterE
	afterSign
	inExponent
	faulty
)

// newJSONStream returns a stream for one value whose depth is at most limit. It keeps the literals
// of keys up to maxKey bytes.
func newJSONStream(on streamEvents, limit, maxKey int) jsonStream {
	return jsonStream{on: on, limit: limit, arrays: make([]uint64, (limit+63)/64),
		key: excerpt{max: maxKey}}
}

// reset prepares for another value.
func (s *jsonStream) reset() {
	s.key.reset()
	*s = jsonStream{on: s.on, limit: s.limit, wantObject: s.wantObject, arrays: s.arrays,
		key: s.key}
}

// write reads the next piece.
func (s *jsonStream) write(b []byte) {
	s.piece = b
	for i := 0; i < len(b); {
		i = s.step(b, i)
	}
	s.key.nextPiece(b)
	s.piece = nil
	s.at += len(b)
}

// complete reports whether the bytes so far are one value, with only white space around it. A
// number at the end is not known to be complete before finish.
func (s *jsonStream) complete() bool { return s.state == wantNothing }

// err returns the reason why the bytes so far can't begin a value, or nil if they can.
func (s *jsonStream) err() error {
	if s.fault == nil {
		return nil
	}
	return fmt.Errorf("byte %d: %w", s.faultAt+1, s.fault)
}

// finish ends the value. If the value is not valid, it returns the position of the first wrong byte
// and the reason.
func (s *jsonStream) finish() (int, error) {
	switch s.state {
	case wantNothing, faulty:
	case afterZero, inInteger, inFraction, inExponent:
		s.endValue(s.at)
		if s.depth > 0 {
			s.fail(errCut, s.at)
		}
	case afterMinus, afterPoint, afterE, afterSign:
		s.fail(errNumber, s.at)
	case inLiteral:
		s.fail(errLiteral, s.literalAt)
	default:
		s.fail(errCut, s.at)
	}
	return s.faultAt, s.fault
}

// step reads from b[i] to the end of the current token or of b, and returns the position after it.
func (s *jsonStream) step(b []byte, i int) int {
	c := b[i]
	switch s.state {
	case inString:
		return s.stringBytes(b, i)
	case inInteger, inFraction, inExponent:
		if i = skipDigits(b, i); i < len(b) {
			return s.afterDigits(b[i], i)
		}
		return i
	case inEscape:
		return s.escape(c, i)
	case inHex:
		if hexDigit(c) < 0 {
			return s.fail(errEscape, s.at+i)
		}
		if s.hexDigits--; s.hexDigits == 0 {
			s.state = inString
		}
		return i + 1
	case inLiteral:
		if c != s.literal[0] {
			return s.fail(errLiteral, s.literalAt)
		}
		if s.literal = s.literal[1:]; s.literal == "" {
			s.endValue(s.at + i + 1)
		}
		return i + 1
	case afterMinus, afterZero, afterPoint, afterE, afterSign:
		return s.number(c, i)
	case faulty:
		return len(b)
	}
	if i = skipSpace(b, i); i < len(b) {
		return s.token(b[i], i)
	}
	return i
}

// token reads a byte that is not white space and not inside a string, a number or a literal.
func (s *jsonStream) token(c byte, i int) int {
	switch s.state {
	case wantFirstElement:
		if c == ']' {
			return s.close(i)
		}
		return s.value(c, i)
	case wantValue:
		return s.value(c, i)
	case wantFirstKey, wantKey:
		switch {
		case c == '}' && s.state == wantFirstKey:
			return s.close(i)
		case c != '"':
			return s.fail(errKey, s.at+i)
		}
		s.state = inString
		s.key.begin(i)
		return i + 1
	case wantColon:
		if c != ':' {
			return s.fail(errColon, s.at+i)
		}
		s.state = wantValue
		return i + 1
	case wantNext:
		return s.next(c, i)
	}
	return s.fail(errTrailing, s.at+i)
}

// next reads the byte after a value in a container.
func (s *jsonStream) next(c byte, i int) int {
	after, end, reason := wantKey, byte('}'), error(errMember)
	if s.inArray() {
		after, end, reason = wantValue, ']', errElement
	}
	switch c {
	case ',':
		s.state, s.from = after, s.at+i+1
		return i + 1
	case end:
		return s.close(i)
	}
	return s.fail(reason, s.at+i)
}

func (s *jsonStream) value(c byte, i int) int {
	if s.depth == 0 && s.wantObject && c != '{' {
		return s.fail(errNoObject, s.at+i)
	}
	if s.depth <= eventDepth {
		var key []byte
		if s.depth > 0 && !s.inArray() && s.key.complete() {
			key = s.key.bytes
		}
		s.on.begin(s.depth, key, c, s.at+i)
	}
	switch {
	case c == '"':
		s.state = inString
	case c == '-':
		s.state = afterMinus
	case c == '0':
		s.state = afterZero
	case isDigit(c):
		s.state = inInteger
	case c == '{':
		return s.open(wantFirstKey, i)
	case c == '[':
		return s.open(wantFirstElement, i)
	case c == 't':
		s.state, s.literal, s.literalAt = inLiteral, "rue", s.at+i
	case c == 'f':
		s.state, s.literal, s.literalAt = inLiteral, "alse", s.at+i
	case c == 'n':
		s.state, s.literal, s.literalAt = inLiteral, "ull", s.at+i
	default:
		return s.fail(errValue, s.at+i)
	}
	return i + 1
}

func (s *jsonStream) open(first state, i int) int {
	if s.depth == s.limit {
		return s.fail(errTooNested, s.at+i)
	}
	word, bit := s.depth/64, uint64(1)<<(s.depth%64)
	s.arrays[word] &^= bit
	if first == wantFirstElement {
		s.arrays[word] |= bit
	}
	s.depth++
	s.state, s.from = first, s.at+i+1
	return i + 1
}

func (s *jsonStream) close(i int) int {
	s.depth--
	s.endValue(s.at + i + 1)
	return i + 1
}

func (s *jsonStream) inArray() bool {
	return s.arrays[(s.depth-1)/64]&(1<<((s.depth-1)%64)) != 0
}

func (s *jsonStream) endValue(at int) {
	s.state = wantNext
	if s.depth == 0 {
		s.state = wantNothing
	}
	if s.depth <= eventDepth {
		s.on.end(s.depth, at)
	}
}

func (s *jsonStream) stringBytes(b []byte, i int) int {
	if i = skipPlain(b, i); i == len(b) {
		return i
	}
	switch b[i] {
	case '\\':
		s.state = inEscape
	case '"':
		if s.key.open {
			s.key.end(b, i+1)
			s.state = wantColon
		} else {
			s.endValue(s.at + i + 1)
		}
	default:
		return s.fail(errControl, s.at+i)
	}
	return i + 1
}

func (s *jsonStream) escape(c byte, i int) int {
	switch {
	case shortEscape[c]:
		s.state = inString
	case c == 'u':
		s.state, s.hexDigits = inHex, 4
	default:
		return s.fail(errEscape, s.at+i)
	}
	return i + 1
}

// number reads the byte after a sign, a leading zero, a point or an e.
func (s *jsonStream) number(c byte, i int) int {
	switch {
	case s.state == afterZero:
		return s.afterDigits(c, i)
	case s.state == afterMinus && c == '0':
		s.state = afterZero
	case s.state == afterMinus && isDigit(c):
		s.state = inInteger
	case s.state == afterPoint && isDigit(c):
		s.state = inFraction
	case s.state == afterE && (c == '+' || c == '-'):
		s.state = afterSign
	case (s.state == afterE || s.state == afterSign) && isDigit(c):
		s.state = inExponent
	default:
		return s.fail(errNumber, s.at+i)
	}
	return i + 1
}

// afterDigits reads the byte after a run of digits. It does not consume a byte that is not part of
// the number.
func (s *jsonStream) afterDigits(c byte, i int) int {
	switch {
	case c == '.' && (s.state == afterZero || s.state == inInteger):
		s.state = afterPoint
	case (c == 'e' || c == 'E') && s.state != inExponent:
		s.state = afterE
	default:
		s.endValue(s.at + i)
		return i
	}
	return i + 1
}

// fail records the reason and returns a position after every piece, which ends write.
func (s *jsonStream) fail(reason error, at int) int {
	s.state, s.fault, s.faultAt, s.key.open = faulty, reason, at, false
	return math.MaxInt
}
