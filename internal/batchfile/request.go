package batchfile

import (
	"hash/crc32"
	"math"
)

// request holds the positions of the fields of one line, and their first bytes.
type request struct {
	object   span             // the JSON value of the line, without the white space around it
	first    byte             // the first byte of object
	values   [fieldCount]span // by field
	repeated [fieldCount]bool // the key occurs more than once

	line []byte // the line; nil if it is too long for memory

	// The following describe a line that is too long for memory.

	heads        []byte           // first bytes of values, up to headBytes of each
	head         [fieldCount]span // position in heads, by field
	starts       [fieldCount]int  // position of the value in the line, by field
	inline       [fieldCount]int  // bytes of inline base64 data, by field
	elements     int64            // number of elements, if the body's input is an array
	firstElement byte
	crc          uint32 // of object
}

// Limits of strings in bytes, without quotes, escapes as written.
const (
	maxCustomID = 4096
	maxText     = 512 // of a method, a url or a model's name
)

// maxNumber is the length above which a number is ignored. Meaningful numbers are shorter.
const maxNumber = 64

// textLimit returns the limit of a field that is a string.
func textLimit(f field) int {
	if f == fieldCustomID {
		return maxCustomID
	}
	return maxText
}

// headBytes returns how many bytes of a value the scanner needs.
func headBytes(f field) int {
	switch f {
	case fieldCustomID, fieldMethod, fieldURL, fieldModel:
		return textLimit(f) + len(`""`)
	case fieldMaxTokens, fieldMaxCompletionTokens, fieldMaxOutputTokens:
		return maxNumber
	case fieldBody, fieldStream:
		return 1
	}
	return prefixBytes
}

// parse reads a line, which must not be blank. On an error it returns the position of the wrong
// byte. If the line is valid JSON but no object, every field is absent.
func (r *request) parse(line []byte) (int, error) {
	*r = request{line: line}
	i := skipSpace(line, 0)
	r.object.start, r.first = i, line[i]
	var err error
	if r.first == '{' {
		i, err = r.parseLine(line, i)
	} else {
		i, err = skipValue(line, i, maxDepth)
	}
	if err != nil {
		return i, err
	}
	r.object.end = i
	if i = skipSpace(line, i); i < len(line) {
		return i, errTrailing
	}
	return i, nil
}

func (r *request) parseLine(line []byte, i int) (int, error) {
	m := membersAt(line, i)
	for {
		key, more, err := m.next()
		if err != nil || !more {
			return m.at, err
		}
		start, f := m.at, lineField(key.of(line))
		if f == fieldBody && !r.values[fieldBody].present() && start < len(line) &&
			line[start] == '{' {
			m.at, err = r.parseBody(line, start)
		} else {
			m.at, err = skipValue(line, start, maxDepth-1)
		}
		if err != nil {
			return m.at, err
		}
		r.set(f, span{start, m.at})
	}
}

func (r *request) parseBody(line []byte, i int) (int, error) {
	m := membersAt(line, i)
	for {
		key, more, err := m.next()
		if err != nil || !more {
			return m.at, err
		}
		start, f := m.at, bodyField(key.of(line))
		if m.at, err = skipValue(line, start, maxDepth-2); err != nil {
			return m.at, err
		}
		r.set(f, span{start, m.at})
	}
}

func (r *request) set(f field, value span) {
	if f == noField {
		return
	}
	if r.values[f].present() {
		r.repeated[f] = true
		return
	}
	r.values[f] = value
}

// beginning returns at least the first headBytes of a field's value; empty if the field is absent.
func (r *request) beginning(f field) []byte {
	if r.line != nil {
		return r.values[f].of(r.line)
	}
	return r.head[f].of(r.heads)
}

// inlineBytes counts the base64 bytes of the data URLs in a field's value.
func (r *request) inlineBytes(f field) int {
	if r.line != nil {
		return inlineData(r.beginning(f))
	}
	return r.inline[f]
}

// sum returns the checksum of the object.
func (r *request) sum() uint32 {
	if r.line != nil {
		return crc32.Checksum(r.object.of(r.line), castagnoli)
	}
	return r.crc
}

// prompt returns the size of the input that an engine will read, and the hash of its prefix.
func (r *request) prompt(e *Endpoint) (size int, prefix uint64) {
	hash, left := uint64(0), prefixBytes
	for _, f := range e.prompt {
		size += r.values[f].len() - r.inlineBytes(f)
		value := r.beginning(f)
		if n := min(len(value), left); e.prefix && n > 0 {
			hash = mix(hash, value[:n])
			left -= n
		}
	}
	return size, hash
}

func (r *request) maxTokens(e *Endpoint) uint32 {
	for _, f := range e.maxTokens {
		if r.values[f].len() > maxNumber {
			continue
		}
		if n := count(r.beginning(f)); n > 0 {
			return uint32(min(n, math.MaxUint32))
		}
	}
	return 0
}

// inputs counts the texts in the input of an embedding request. A string or an array of tokens is
// one text.
func (r *request) inputs() int64 {
	if r.line != nil {
		return inputs(r.beginning(fieldInput))
	}
	if r.firstElement != '"' && r.firstElement != '[' {
		return 1
	}
	return r.elements
}

// inputs counts the texts in an input that is in memory.
func inputs(input []byte) int64 {
	if len(input) == 0 || input[0] != '[' {
		return 1
	}
	i, n := skipSpace(input, 1), int64(0)
	if c := input[i]; c != '"' && c != '[' {
		return 1
	}
	for {
		i, _ = skipValue(input, i, maxDepth)
		n++
		if i = skipSpace(input, i); input[i] == ']' {
			return n
		}
		i = skipSpace(input, i+1)
	}
}
