package batchfile

// ObjectScanner checks bytes that are written to it, in pieces of any size, for being one JSON object, as IsObject does for
// those in memory. It holds no more of them than a key.
type ObjectScanner struct {
	// Member is called for every member of the object, in order; nil: for none.
	Member func(Member)
	// Keep names a member whose first value is kept, up to MostKept bytes. Empty: none.
	Keep string

	state   scanState
	escape  scanState // to go on with after a string
	literal string    // what of true, false or null is still to come
	hex     int       // digits of an escape still to come
	at      int64     // bytes seen before the present Write
	opened  int64     // where the object's braces stand
	closed  int64
	depth   int
	arrays  []uint64 // a bit for each depth: the container there is an array
	member  Member
	key     []byte
	kept    []byte
	keeping keeping
	err     error
}

// Member is where a member of an object stands. Positions count from the first byte.
type Member struct {
	// Key is the literal as it stands, valid during the call; nil if it is longer than MostKept bytes.
	Key []byte
	// From is the first byte after the brace or comma before the key, Next the comma or brace after the value.
	From, Value, End, Next int64
}

// MostKept bounds what an ObjectScanner keeps of a key or a value.
const MostKept = 16 << 10

type keeping uint8

const (
	keepsNothing keeping = iota
	keepsValue
	keptValue
)

type scanState uint8

const (
	beforeObject scanState = iota
	keyOrEnd               // after an opening brace
	keyNext                // after a comma in an object
	beforeColon
	valueNext  // after a colon, or a comma in an array
	valueOrEnd // after an opening bracket
	scanInString
	afterBackslash
	scanInHex
	scanAfterMinus
	scanAfterZero
	scanInInteger
	scanAfterPoint
	scanInFraction
	scanAfterE
	afterESign
	scanInExponent
	scanInLiteral
	afterValue
	afterObject
)

// Write takes the next bytes. An error says that they can't be those of an object any more; it stays.
func (s *ObjectScanner) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	kept := 0 // p[kept:] is not kept yet, if a value is being kept
	for i := 0; i < len(p); i++ {
		if s.state == scanInString {
			from := i
			for i < len(p) && plain[p[i]] {
				i++
			}
			s.appendKey(p[from:i])
			if i == len(p) {
				break
			}
		}
		was := s.keeping
		if err := s.step(p[i], s.at+int64(i)); err != nil {
			s.err = err
			return i, err
		}
		switch {
		case was != keepsValue && s.keeping == keepsValue:
			kept = i
		case was == keepsValue && s.keeping == keptValue:
			s.keep(p[kept:i])
		}
	}
	if s.keeping == keepsValue {
		s.keep(p[kept:])
	}
	s.at += int64(len(p))
	return len(p), nil
}

// Whole reports whether the bytes so far are one object, with nothing but white space around it.
func (s *ObjectScanner) Whole() bool { return s.err == nil && s.state == afterObject }

// Kept is the value of the member named by Keep; nil if there was none, or if it was too long.
func (s *ObjectScanner) Kept() []byte {
	if s.keeping != keptValue {
		return nil
	}
	return s.kept
}

func (s *ObjectScanner) keep(b []byte) {
	if len(s.kept)+len(b) > MostKept {
		s.kept, s.Keep, s.keeping = nil, "", keepsNothing
		return
	}
	s.kept = append(s.kept, b...)
}

// step takes one byte at a position.
func (s *ObjectScanner) step(c byte, at int64) error {
	switch s.state {
	case scanInString:
		return s.scanInString(c, at)
	case afterBackslash:
		return s.afterBackslash(c)
	case scanInHex:
		if hexDigit(c) < 0 {
			return errEscape
		}
		s.appendKey([]byte{c})
		if s.hex--; s.hex == 0 {
			s.state = scanInString
		}
		return nil
	case scanInLiteral:
		if c != s.literal[0] {
			return errLiteral
		}
		if s.literal = s.literal[1:]; s.literal == "" {
			s.state = afterValue
			s.valueEnds(at + 1)
		}
		return nil
	}
	if next, more, err := s.inNumber(c); err != nil {
		return err
	} else if more {
		s.state = next
		return nil
	}
	if s.state >= scanAfterMinus && s.state <= scanInExponent {
		s.state = afterValue
		s.valueEnds(at)
	}
	if c == ' ' || c == '\t' || c == '\r' || c == '\n' {
		return nil
	}
	return s.structural(c, at)
}

func (s *ObjectScanner) scanInString(c byte, at int64) error {
	switch c {
	case '"':
		s.appendKey([]byte{c})
		s.state = s.escape
		if s.state == afterValue {
			s.valueEnds(at + 1)
		}
	case '\\':
		s.appendKey([]byte{c})
		s.state = afterBackslash
	default:
		return errControl
	}
	return nil
}

func (s *ObjectScanner) afterBackslash(c byte) error {
	s.appendKey([]byte{c})
	switch {
	case shortEscape[c]:
		s.state = scanInString
	case c == 'u':
		s.state, s.hex = scanInHex, 4
	default:
		return errEscape
	}
	return nil
}

// inNumber reports the state after one more byte of a number; more is false where c is none, or no number is being read.
func (s *ObjectScanner) inNumber(c byte) (next scanState, more bool, err error) {
	digit := isDigit(c)
	switch s.state {
	case scanAfterMinus:
		switch {
		case c == '0':
			return scanAfterZero, true, nil
		case digit:
			return scanInInteger, true, nil
		}
		return 0, false, errNumber
	case scanInInteger:
		if digit {
			return scanInInteger, true, nil
		}
		fallthrough
	case scanAfterZero:
		if c == '.' {
			return scanAfterPoint, true, nil
		}
		if c|0x20 == 'e' {
			return scanAfterE, true, nil
		}
	case scanAfterPoint:
		if !digit {
			return 0, false, errNumber
		}
		return scanInFraction, true, nil
	case scanInFraction:
		if digit {
			return scanInFraction, true, nil
		}
		if c|0x20 == 'e' {
			return scanAfterE, true, nil
		}
	case scanAfterE:
		if c == '+' || c == '-' {
			return afterESign, true, nil
		}
		fallthrough
	case afterESign:
		if !digit {
			return 0, false, errNumber
		}
		return scanInExponent, true, nil
	case scanInExponent:
		if digit {
			return scanInExponent, true, nil
		}
	}
	return 0, false, nil
}

// structural takes a byte that stands between tokens, or begins one.
func (s *ObjectScanner) structural(c byte, at int64) error {
	switch s.state {
	case beforeObject:
		if c != '{' {
			return errValue
		}
		return s.open(c, at)
	case keyOrEnd, keyNext:
		if c == '}' && s.state == keyOrEnd {
			return s.close(at)
		}
		if c != '"' {
			return errKey
		}
		s.state, s.escape = scanInString, beforeColon
		if s.depth == 1 {
			s.key, s.member.Key = append(s.key[:0], c), nil
		}
	case beforeColon:
		if c != ':' {
			return errColon
		}
		s.state = valueNext
	case valueOrEnd, valueNext:
		if c == ']' && s.state == valueOrEnd {
			return s.close(at)
		}
		return s.value(c, at)
	case afterValue:
		return s.afterValue(c, at)
	default: // afterObject
		return errTrailing
	}
	return nil
}

func (s *ObjectScanner) afterValue(c byte, at int64) error {
	if s.inArray() {
		switch c {
		case ',':
			s.state = valueNext
			return nil
		case ']':
			return s.close(at)
		}
		return errElement
	}
	switch c {
	case ',':
		s.memberEnds(at)
		s.state = keyNext
		return nil
	case '}':
		s.memberEnds(at)
		return s.close(at)
	}
	return errMember
}

// value begins a value.
func (s *ObjectScanner) value(c byte, at int64) error {
	if s.depth == 1 {
		s.member.Value, s.member.End = at, 0
		if s.keeping == keepsNothing && s.Keep != "" && len(s.key) == len(s.Keep)+2 && string(s.key[1:len(s.key)-1]) == s.Keep {
			s.keeping = keepsValue
		}
	}
	switch {
	case c == '"':
		s.state, s.escape = scanInString, afterValue
	case c == '-':
		s.state = scanAfterMinus
	case c == '0':
		s.state = scanAfterZero
	case isDigit(c):
		s.state = scanInInteger
	case c == '{' || c == '[':
		return s.open(c, at)
	case c == 't':
		s.state, s.literal = scanInLiteral, "rue"
	case c == 'f':
		s.state, s.literal = scanInLiteral, "alse"
	case c == 'n':
		s.state, s.literal = scanInLiteral, "ull"
	default:
		return errValue
	}
	return nil
}

func (s *ObjectScanner) open(c byte, at int64) error {
	if s.depth == answerDepth {
		return errTooNested
	}
	word, bit := s.depth/64, uint64(1)<<(s.depth%64)
	if word == len(s.arrays) {
		s.arrays = append(s.arrays, 0)
	}
	s.depth++
	if c == '[' {
		s.arrays[word] |= bit
		s.state = valueOrEnd
		return nil
	}
	s.arrays[word] &^= bit
	s.state = keyOrEnd
	if s.depth == 1 {
		s.opened, s.member.From = at, at+1
	}
	return nil
}

func (s *ObjectScanner) close(at int64) error {
	s.depth--
	if s.depth == 0 {
		s.state, s.closed = afterObject, at
		return nil
	}
	s.state = afterValue
	s.valueEnds(at + 1)
	return nil
}

func (s *ObjectScanner) inArray() bool {
	top := s.depth - 1
	return s.arrays[top/64]&(1<<(top%64)) != 0
}

// valueEnds notes where a value ends.
func (s *ObjectScanner) valueEnds(at int64) {
	if s.depth == 1 {
		s.member.End = at
	}
}

// memberEnds reports the member before the comma or brace at a position.
func (s *ObjectScanner) memberEnds(at int64) {
	if s.depth != 1 {
		return
	}
	if s.keeping == keepsValue {
		s.keeping = keptValue
	}
	if s.Member != nil {
		s.member.Key, s.member.Next = s.key, at
		s.Member(s.member)
	}
	s.member.From = at + 1
}

// appendKey adds to the key that is being read, if one is.
func (s *ObjectScanner) appendKey(b []byte) {
	if s.depth != 1 || s.escape != beforeColon || s.key == nil {
		return
	}
	if len(s.key)+len(b) > MostKept {
		s.key = nil
		return
	}
	s.key = append(s.key, b...)
}
