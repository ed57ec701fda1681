package batchfile

// syntax checks one JSON value that arrives in pieces of any size, and stops where values begin and
// end that are not nested deeper than level. Its memory does not grow with the value, but for a bit
// for each container that is open. The zero value, with a limit, reads a value at level 0.
type syntax struct {
	level int16 // number of containers around the values that are reported, at most; or unreported
	limit int16 // of nesting
	depth int16 // number of open containers
	state state
	fault syntaxError // the first one
	// escape is 1 after a backslash, more than 1 in \uXXXX: 1 and the number of missing digits.
	escape  uint8
	literal byte  // the first letter of true, false or null
	letters uint8 // number of its letters that were read

	// kinds has a bit for each of the innermost open containers, up to 64; 1: an array. The lowest
	// bit is that of the innermost one. outer has the bits of those around them.
	kinds uint64
	outer []uint64

	base          int // number of bytes before the current piece
	from          int // position after the last opening bracket or comma between reported values
	keyAt, keyEnd int // positions of the last key
	faultAt       int // position of the fault
}

// unreported is a level above every value.
const unreported = -1

type state uint8

const (
	// States between values.
	wantValue state = iota
	wantFirstElement
	wantFirstKey
	wantKey
	inKey
	wantColon
	wantNext // ',' or the end of the container
	wantNothing

	// States in a value, from its first byte on.
	atValue
	inString
	inLiteral
	// in a number
	afterZero
	inInteger
	inFraction
	inExponent
	afterMinus
	afterPoint
	afterE
	afterSign
)

// event is why run has stopped.
type event uint8

const (
	cut    event = iota // the piece was read
	begins              // at the first byte of a value
	ends                // after a value
	faulty              // at the first wrong byte
)

// run reads the piece b from i on. It returns where and why it has stopped.
func (s *syntax) run(b []byte, i int) (int, event) {
	var ev event
	for i < len(b) {
		if s.state < atValue {
			i, ev = s.between(b, i)
		} else {
			i, ev = s.inside(b, i)
		}
		if ev != cut && (ev != begins || s.depth <= s.level) {
			return i, ev
		}
	}
	return i, cut
}

// between reads what is not a value. It stops before every value.
func (s *syntax) between(b []byte, i int) (int, event) {
	state := s.state
	if state != inKey {
		if i = skipSpace(b, i); i == len(b) {
			return i, cut
		}
	}
	if state == wantNext {
		if b[i] != ',' {
			return s.after(b[i], i)
		}
		i++
		s.from = s.base + i
		state = wantKey
		if s.inArray() {
			state = wantValue
		}
		if i = skipSpace(b, i); i == len(b) {
			return s.pause(state, i)
		}
	}
	if state == wantKey || state == wantFirstKey {
		if b[i] == '}' && state == wantFirstKey {
			return s.close(i)
		}
		if b[i] != '"' {
			return s.fail(errKey, i)
		}
		s.keyAt = s.base + i
		i++
		state = inKey
	}
	if state == inKey {
		var ended bool
		if i, ended = s.text(b, i); !ended {
			return s.pause(inKey, i)
		}
		s.keyEnd = s.base + i
		state = wantColon
		if i = skipSpace(b, i); i == len(b) {
			return s.pause(state, i)
		}
	}
	if state == wantColon {
		if b[i] != ':' {
			return s.fail(errColon, i)
		}
		state = wantValue
		if i = skipSpace(b, i+1); i == len(b) {
			return s.pause(state, i)
		}
	}
	switch {
	case state == wantNothing:
		return s.fail(errTrailing, i)
	case b[i] == ']' && state == wantFirstElement:
		return s.close(i)
	}
	s.state = atValue
	return i, begins
}

// pause returns where a piece was read, in the given state, or the fault that was found.
func (s *syntax) pause(state state, i int) (int, event) {
	s.state = state
	if s.fault != 0 {
		return i, faulty
	}
	return i, cut
}

// inside reads bytes of a value, up to its end or the first value in it.
func (s *syntax) inside(b []byte, i int) (int, event) {
	for {
		state := s.state
		var ended bool
		if state == atValue {
			switch c := b[i]; {
			case c == '"':
				state = inString
			case isDigit(c) && c != '0':
				state = inInteger
			case c == '{' || c == '[':
				return s.open(c, i)
			case c == '-':
				state = afterMinus
			case c == '0':
				state = afterZero
			case literals[c] != "":
				state, s.literal, s.letters = inLiteral, c, 1
			default:
				return s.fail(errValue, i)
			}
			i++
		}
		switch state {
		case inString:
			i, ended = s.text(b, i)
		case inLiteral:
			i, ended = s.literalBytes(b, i)
		default:
			i, state, ended = s.number(b, i, state)
		}
		if !ended {
			return s.pause(state, i)
		}
		if s.depth <= s.level || !s.inArray() || len(b)-i < 2 || b[i] != ',' {
			return s.end(i)
		}
		// Another element follows.
		if i++; b[i] == ' ' && i+1 < len(b) {
			i++
		}
		if s.state = wantValue; isSpace(b[i]) {
			return i, cut
		}
		s.state = atValue
	}
}

var literals = [256]string{'t': "true", 'f': "false", 'n': "null"}

// inArray reports whether the innermost open container is an array.
func (s *syntax) inArray() bool { return s.kinds&1 == 1 }

func (s *syntax) open(bracket byte, i int) (int, event) {
	if s.depth == s.limit {
		return s.fail(errTooNested, i)
	}
	if s.depth > 0 && s.depth%64 == 0 {
		s.outer = append(s.outer, s.kinds)
	}
	s.kinds <<= 1
	s.state = wantFirstKey
	if bracket == '[' {
		s.kinds |= 1
		s.state = wantFirstElement
	}
	s.depth++
	s.from = s.base + i + 1
	return i + 1, cut
}

func (s *syntax) close(i int) (int, event) {
	s.depth--
	s.kinds >>= 1
	if s.depth > 0 && s.depth%64 == 0 {
		last := len(s.outer) - 1
		s.kinds, s.outer = s.outer[last], s.outer[:last]
	}
	return s.end(i + 1)
}

// end ends a value before position i.
func (s *syntax) end(i int) (int, event) {
	s.state = wantNext
	if s.depth == 0 {
		s.state = wantNothing
	}
	if s.depth <= s.level {
		return i, ends
	}
	return i, cut
}

// after reads the byte after the last value in a container.
func (s *syntax) after(c byte, i int) (int, event) {
	switch {
	case s.inArray() && c == ']', !s.inArray() && c == '}':
		return s.close(i)
	case s.inArray():
		return s.fail(errElement, i)
	}
	return s.fail(errMember, i)
}

// text reads bytes of a string. It reports whether the string has ended.
func (s *syntax) text(b []byte, i int) (int, bool) {
	for {
		if s.escape > 0 {
			if i = s.escaped(b, i); s.escape > 0 {
				return i, false
			}
		}
		if i = skipPlain(b, i); i == len(b) {
			return i, false
		}
		switch {
		case b[i] == '"':
			return i + 1, true
		case b[i] != '\\':
			s.fail(errControl, i)
			return i, false
		case i+1 < len(b) && shortEscape[b[i+1]]:
			i += 2
		default:
			s.escape = 1
			i++
		}
	}
}

// escaped reads bytes of an escape, from the one after the backslash on.
func (s *syntax) escaped(b []byte, i int) int {
	for ; i < len(b) && s.escape > 0; i++ {
		switch {
		case s.escape > 1 && hexDigit(b[i]) >= 0:
			if s.escape--; s.escape == 1 {
				s.escape = 0
			}
		case s.escape == 1 && shortEscape[b[i]]:
			s.escape = 0
		case s.escape == 1 && b[i] == 'u':
			s.escape = 1 + 4
		default:
			s.fail(errEscape, i)
			return i
		}
	}
	return i
}

// literalBytes reads bytes of true, false or null. It reports whether the literal has ended.
func (s *syntax) literalBytes(b []byte, i int) (int, bool) {
	literal := literals[s.literal]
	for ; i < len(b) && int(s.letters) < len(literal); i++ {
		if b[i] != literal[s.letters] {
			s.fail(errLiteral, i-int(s.letters))
			return i, false
		}
		s.letters++
	}
	return i, int(s.letters) == len(literal)
}

// number reads bytes of a number. It reports whether the number has ended, which the byte after it
// shows.
func (s *syntax) number(b []byte, i int, state state) (at int, after state, ended bool) {
	for ; i < len(b); i++ {
		c := b[i]
		digit := isDigit(c)
		switch {
		case state.endsNumber():
			switch {
			case digit && state != afterZero:
				i = skipDigits(b, i) - 1
			case c == '.' && state <= inInteger:
				state = afterPoint
			case c|0x20 == 'e' && state != inExponent:
				state = afterE
			default:
				return i, state, true
			}
		case state == afterE && (c == '+' || c == '-'):
			state = afterSign
		case !digit:
			s.fail(errNumber, i)
			return i, state, false
		case state == afterPoint:
			state = inFraction
		case state != afterMinus:
			state = inExponent
		case c == '0':
			state = afterZero
		default:
			state = inInteger
		}
	}
	return i, state, false
}

// endsNumber reports whether the bytes of a number so far are a number.
func (s state) endsNumber() bool { return s >= afterZero && s <= inExponent }

// finish ends the value, of which n bytes of the current piece were read. It returns its end or, if
// it is not valid, the position of the first wrong byte and the reason.
func (s *syntax) finish(n int) (int, error) {
	switch {
	case s.fault != 0 || s.state == wantNothing:
	case s.state == inLiteral:
		s.fail(errLiteral, n-int(s.letters))
	case s.state >= afterMinus:
		s.fail(errNumber, n)
	case s.depth > 0 || !s.state.endsNumber():
		s.fail(errCut, n)
	}
	if s.fault != 0 {
		return s.faultAt, s.fault
	}
	return s.base + n, nil
}

// fail records the first fault. Nothing is read after it.
func (s *syntax) fail(reason syntaxError, i int) (int, event) {
	if s.fault == 0 {
		s.fault, s.faultAt = reason, s.base+i
	}
	return i, faulty
}
