package batchfile

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// Result is one finished line as it will stand in the output or the error file.
type Result struct {
	ID       string // batch_req_…
	CustomID []byte // the string literal of the input line, quotes and escapes as the user wrote them

	// The answer of the engine. Status 0: there was none, and the error below stands in its place.
	Status    int // of HTTP
	RequestID string
	Body      []byte // as it came

	ErrorCode    string
	ErrorMessage string
}

// AppendResult appends the result's JSON line, newline included, to dst.
//
// The body stands there byte for byte if it is JSON, save that newlines between its tokens become spaces, since a line
// can't hold them, and bytes that are not UTF-8 become U+FFFD, since one of them would spoil the whole file for its
// reader. A body that is no JSON becomes a string of its text.
func AppendResult(dst []byte, r Result) []byte {
	dst = append(dst, `{"id":`...)
	dst = appendQuoted(dst, r.ID)
	dst = append(dst, `,"custom_id":`...)
	dst = append(dst, r.CustomID...)
	if r.Status == 0 {
		dst = append(dst, `,"response":null,"error":{"code":`...)
		dst = appendQuoted(dst, r.ErrorCode)
		dst = append(dst, `,"message":`...)
		dst = appendQuoted(dst, r.ErrorMessage)
		return append(dst, "}}\n"...)
	}
	dst = append(dst, `,"response":{"status_code":`...)
	dst = strconv.AppendInt(dst, int64(r.Status), 10)
	dst = append(dst, `,"request_id":`...)
	dst = appendQuoted(dst, r.RequestID)
	dst = append(dst, `,"body":`...)
	dst = appendAnswer(dst, r.Body)
	return append(dst, "},\"error\":null}\n"...)
}

func appendAnswer(dst, body []byte) []byte {
	if !valid(body, answerDepth) {
		return appendQuoted(dst, body)
	}
	if !utf8.Valid(body) {
		body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
	}
	from := len(dst)
	dst = append(dst, body...)
	// Inside strings newlines are escaped, so every raw one stands between tokens.
	blank(dst[from:], '\n')
	blank(dst[from:], '\r')
	return dst
}

func blank(b []byte, c byte) {
	for i := bytes.IndexByte(b, c); i >= 0; i = bytes.IndexByte(b, c) {
		b[i] = ' '
		b = b[i+1:]
	}
}

// CustomID returns what a custom_id's literal says. Two literals mean the same id exactly if it returns the same string.
func CustomID(literal []byte) string {
	return string(textOf(literal, nil))
}

// ScanResults reads an output or error file, whose lines may have any length, and calls fn with each custom_id and the
// number of its line from 1. It checks that each line is a JSON object with a custom_id, and stops at the first error.
func ScanResults(r io.Reader, fn func(customID string, line int64) error) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var carry []byte
	for number := int64(1); ; number++ {
		line, err := readLine(in, &carry)
		if err != nil && err != io.EOF {
			return fmt.Errorf("read results: %w", err)
		}
		if skipSpace(line, 0) < len(line) {
			id, faulty := resultID(line)
			if faulty != nil {
				return fmt.Errorf("results, line %d: %w", number, faulty)
			}
			if err := fn(id, number); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

// readLine returns the next line, which stays good until the next call. Lines longer than the reader's buffer gather
// in carry.
func readLine(in *bufio.Reader, carry *[]byte) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return line, err
	}
	*carry = (*carry)[:0]
	for err == bufio.ErrBufferFull {
		*carry = append(*carry, line...)
		line, err = in.ReadSlice('\n')
	}
	*carry = append(*carry, line...)
	return *carry, err
}

func resultID(line []byte) (string, error) {
	i := skipSpace(line, 0)
	if line[i] != '{' {
		return "", fmt.Errorf("not a JSON object")
	}
	var id span
	m := membersAt(line, i)
	for {
		key, more, err := m.next()
		if err == nil && more {
			start := m.at
			if m.at, err = skipValue(line, start, answerDepth); err == nil && lineField(key.of(line)) == fieldCustomID {
				id = span{start, m.at}
			}
		}
		if err != nil {
			return "", fmt.Errorf("byte %d: %w", m.at+1, err)
		}
		if !more {
			break
		}
	}
	if i = skipSpace(line, m.at); i < len(line) {
		return "", fmt.Errorf("byte %d: %w", i+1, errTrailing)
	}
	if !id.present() || line[id.start] != '"' {
		return "", fmt.Errorf("no custom_id")
	}
	return CustomID(id.of(line)), nil
}
