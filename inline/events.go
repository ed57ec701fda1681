package inline

import (
	"bytes"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// responsesURL is the URL of the Responses API, whose events and answers have a shape of their own.
const responsesURL = "/v1/responses"

// events counts the tokens of server-sent events that arrive in pieces: one for each event that
// brings some. The usage of the answer replaces the count in the end.
type events struct {
	responses bool
	inRow     bool   // the row that goes on has begun in an earlier piece
	head      []byte // its beginning
	spoke     bool
}

// maxHead limits the beginning of a row that is kept when the row is cut.
const maxHead = 512

// count reads the next piece and returns the tokens that it has brought.
func (e *events) count(p []byte) (tokens int) {
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		row := p
		if end >= 0 {
			row, p = p[:end], p[end+1:]
		} else {
			p = nil
		}
		if e.inRow || end < 0 {
			e.inRow = true
			e.head = append(e.head, row[:min(len(row), maxHead-len(e.head))]...)
			row = e.head
		}
		if end < 0 {
			break
		}
		if e.brings(row) {
			e.spoke = true
			tokens++
		}
		e.inRow, e.head = false, nil
	}
	return tokens
}

var (
	dataField  = []byte("data:")
	noChoices  = []byte(`"choices":[]`)
	roleMember = []byte(`"role"`)
	content    = []byte(`"content":`)
	deltaType  = []byte(`.delta"`)
)

// brings reports whether a row is the data of an event with tokens.
func (e *events) brings(row []byte) bool {
	data, is := bytes.CutPrefix(row, dataField)
	if data = bytes.TrimLeft(data, " "); !is || len(data) == 0 || data[0] != '{' {
		return false
	}
	if e.responses {
		return bytes.Contains(data[:min(len(data), maxHead)], deltaType)
	}
	if e.spoke {
		return !bytes.Contains(data, noChoices)
	}
	// The first event of a chat may bring the role only, which some servers send at once.
	if _, text, has := bytes.Cut(data, content); has && bytes.Contains(data, roleMember) {
		text = bytes.TrimLeft(text, " ")
		return !bytes.HasPrefix(text, []byte(`""`)) && !bytes.HasPrefix(text, []byte("null"))
	}
	return !bytes.Contains(data, noChoices)
}

// usageScan finds the usage in an answer that arrives in pieces. Of several the last one counts, as
// in streams that report it with each event. Within a string the quotes of the name would be
// escaped, so a text can't be taken for it.
type usageScan struct {
	cut    [len(usageName) - 1]byte // the end of the piece before
	n      int
	value  []byte // what follows the name so far; nil: it was not found
	usages batchfile.Usage
	found  bool
}

const (
	usageName = `"usage"`
	// maxUsage limits the bytes of a usage, whose members are a few numbers.
	maxUsage = 2 << 10
)

var usageMember = []byte(usageName)

func (s *usageScan) usage() (batchfile.Usage, bool) { return s.usages, s.found }

// read reads the next piece.
func (s *usageScan) read(p []byte) {
	if s.value != nil {
		s.take(p)
	}
	if s.n > 0 {
		joint := append(s.cut[:s.n:s.n], p[:min(len(p), len(usageName)-1)]...)
		if i := bytes.Index(joint, usageMember); i >= 0 {
			s.begin(p[i+len(usageName)-s.n:])
		}
	}
	for rest := p; ; {
		i := bytes.Index(rest, usageMember)
		if i < 0 {
			break
		}
		rest = rest[i+len(usageName):]
		s.begin(rest)
	}
	// the end of this piece, after that of the last one if this is short
	if len(p) >= len(s.cut) {
		s.n = copy(s.cut[:], p[len(p)-len(s.cut):])
		return
	}
	keep := min(s.n, len(s.cut)-len(p))
	copy(s.cut[:], s.cut[s.n-keep:s.n])
	s.n = keep + copy(s.cut[keep:], p)
}

func (s *usageScan) begin(rest []byte) {
	s.value = make([]byte, 0, 64)
	s.take(rest)
}

// take reads what follows the name, until the value has ended.
func (s *usageScan) take(p []byte) {
	for i, c := range p {
		switch {
		case len(s.value) == 0 && (c == ':' || c == ' '):
			continue
		case len(s.value) == 0 && c != '{', len(s.value) == maxUsage:
			s.value = nil
			return
		}
		if s.value = append(s.value, c); c != '}' {
			continue
		}
		if u, ok := batchfile.ParseUsage(s.value); ok {
			s.usages, s.found, s.value = u, true, nil
			_ = i
			return
		}
	}
}
