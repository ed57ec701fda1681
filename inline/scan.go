package inline

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidefill/tidefill/internal/batchfile"
)

const (
	// maxDepth limits the nested values of a body, as for lines of batches.
	maxDepth = 512
	// maxValue limits the value of a member that is read, in bytes. Names of models are far
	// shorter.
	maxValue = 1 << 10
)

// member is a member of a body that is read.
type member uint8

const (
	otherMember member = iota
	modelMember
	tierMember
	saltMember
	streamMember
	limitMember  // max_tokens or what has replaced it
	promptMember // messages, prompt or input
)

var members = map[string]member{
	"model":                 modelMember,
	"service_tier":          tierMember,
	"cache_salt":            saltMember,
	"stream":                streamMember,
	"max_tokens":            limitMember,
	"max_completion_tokens": limitMember,
	"max_output_tokens":     limitMember,
	"messages":              promptMember,
	"prompt":                promptMember,
	"input":                 promptMember,
}

// memberOf returns the member that a key means. mistaken reports a key that some servers take for
// one of them, because they ignore the case of letters.
func memberOf(key []byte) (m member, mistaken bool) {
	if m = members[string(key)]; m != otherMember {
		return m, false
	}
	if isLower(key) {
		return otherMember, false
	}
	for name := range members {
		if strings.EqualFold(name, string(key)) {
			return otherMember, true
		}
	}
	return otherMember, false
}

func isLower(key []byte) bool {
	for _, c := range key {
		if c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return true
}

// span is a part of a body, up to the byte before to.
type span struct{ from, to int }

// scan reads along as a body passes in pieces of any size. It checks that the body is one JSON
// object in UTF-8 that has no member twice of those that are read, and finds these. It holds at
// most the value of one member.
type scan struct {
	walker *batchfile.ObjectWalker
	runes  runes
	piece  []byte
	base   int // position of the piece
	seen   map[string]bool
	open   member // whose value is being read
	value  []byte // of that, from earlier pieces
	from   int    // position of the value

	model      string
	modelAt    span // of its value; to is 0 until that was read
	tier       string
	stream     bool
	maxTokens  int
	promptAt   span // of the first of the prompt's members; to is 0 until its end
	saltAt     span // from is 0 until it has begun
	saltIsText bool // it is no null
	// end is the position of the brace that ends the body, once that was read.
	end   int
	fault *failure
}

func newScan() *scan {
	s := &scan{seen: make(map[string]bool, 8)}
	s.walker = batchfile.NewObjectWalker(s, 1, maxDepth)
	return s
}

// read reads the next piece and returns the first fault.
func (s *scan) read(p []byte) *failure {
	if s.fault != nil {
		return s.fault
	}
	if s.base == 0 && bytes.HasPrefix(p, []byte("\xEF\xBB\xBF")) {
		s.fail("invalid_json", "", "The body begins with a byte order mark; send it without.")
	}
	if !s.runes.valid(p) {
		s.fail("invalid_utf8", "", "The body is not UTF-8.")
	}
	s.piece = p
	if _, err := s.walker.Write(p); err != nil {
		s.fail("invalid_json", "", "The body is not valid JSON: %v.", err)
	}
	if s.open != otherMember && s.open != promptMember {
		if s.value = append(s.value, p[max(0, s.from-s.base):]...); len(s.value) > maxValue {
			s.tooLong()
		}
	}
	s.base += len(p)
	s.piece = nil
	return s.fault
}

// finish returns the first fault of the whole body.
func (s *scan) finish() *failure {
	if s.fault != nil {
		return s.fault
	}
	if err := s.walker.Finish(); err != nil {
		s.fail("invalid_json", "", "The body is not valid JSON: %v.", err)
	}
	if s.fault == nil && s.modelAt.to == 0 {
		s.fail("no_model", "model", "Missing required parameter: 'model'.")
		s.fault.code = "missing_required_parameter"
	}
	return s.fault
}

func (s *scan) fail(reason, param, format string, args ...any) {
	if s.fault == nil {
		s.fault = badBody(reason, param, format, args...)
	}
}

func (s *scan) tooLong() {
	s.fail("member", "", "A member of the body, of model, service_tier, cache_salt and the "+
		"limits of tokens, is longer than %d bytes.", maxValue)
}

// Begin implements batchfile.ObjectVisitor.
func (s *scan) Begin(depth int, key []byte, first byte, at int) {
	if depth != 1 || key == nil || s.fault != nil {
		return
	}
	m, mistaken := memberOf(key)
	switch {
	case mistaken:
		s.fail("repeated_member", "", "The body has the member %q; write it in lower case.", key)
		return
	case m == otherMember:
		return
	case s.seen[string(key)]:
		s.fail("repeated_member", string(key), "The body has the member '%s' twice.", key)
		return
	}
	s.seen[string(key)] = true
	switch {
	case m == modelMember && first != '"':
		s.fail("member", "model", "Invalid type for 'model': expected a string.")
	case (m == tierMember || m == saltMember) && first != '"' && first != 'n':
		s.fail("member", string(key), "Invalid type for '%s': expected a string.", key)
	case m == promptMember && s.promptAt.from > 0: // input beside prompt: the first counts
		return
	}
	switch m {
	case promptMember:
		s.promptAt.from = at
	case saltMember:
		s.saltAt.from, s.saltIsText = at, first == '"'
	case otherMember, modelMember, tierMember, streamMember, limitMember:
	}
	s.open, s.from, s.value = m, at, s.value[:0]
}

// End implements batchfile.ObjectVisitor.
func (s *scan) End(depth, at int) {
	if depth == 0 {
		s.end = at - len("}")
	}
	if depth != 1 || s.open == otherMember || s.fault != nil {
		return
	}
	m, is := s.open, span{s.from, at}
	s.open = otherMember
	if m == promptMember {
		s.promptAt = is
		return
	}
	value := s.piece[max(0, s.from-s.base) : at-s.base]
	if len(s.value) > 0 {
		s.value = append(s.value, value...)
		value = s.value
	}
	if len(value) > maxValue {
		s.tooLong()
		return
	}
	switch m {
	case modelMember:
		s.modelAt, s.model = is, text(value)
		if s.model == "" {
			s.fail("no_model", "model", "Invalid 'model': it is empty.")
		}
	case tierMember:
		s.tier = text(value)
	case saltMember:
		s.saltAt = is
	case streamMember:
		s.stream = string(value) == "true"
	case limitMember:
		if n, err := strconv.Atoi(string(value)); err == nil && n > 0 &&
			(s.maxTokens == 0 || n < s.maxTokens) {
			s.maxTokens = n
		}
	case otherMember, promptMember:
	}
}

// text decodes a JSON string; null is empty.
func text(literal []byte) (s string) {
	if inner := literal[1 : len(literal)-1]; literal[0] == '"' && bytes.IndexByte(inner,
		'\\') < 0 {
		return string(inner)
	}
	_ = json.Unmarshal(literal, &s) // it was checked
	return s
}

// runes checks that bytes in pieces are UTF-8.
type runes struct {
	cut [utf8.UTFMax]byte // a rune that has not ended
	n   int
}

// valid reports whether the bytes up to the end of p can be UTF-8.
func (r *runes) valid(p []byte) bool {
	for r.n > 0 && len(p) > 0 {
		r.cut[r.n] = p[0]
		r.n++
		p = p[1:]
		if utf8.FullRune(r.cut[:r.n]) {
			if !utf8.Valid(r.cut[:r.n]) {
				return false
			}
			r.n = 0
		}
	}
	for i := 1; i < utf8.UTFMax && i <= len(p); i++ {
		if last := p[len(p)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				r.n = copy(r.cut[:], last)
				p = p[:len(p)-i]
			}
			break
		}
	}
	return utf8.Valid(p)
}
