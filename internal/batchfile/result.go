package batchfile

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// Result is one finished line as it will stand in the output or the error file.
type Result struct {
	ID string // batch_req_…
	// the string literal of the input line, quotes and escapes as the user wrote them
	CustomID []byte

	// The answer of the engine. Status 0: there was none, and the error below stands in its place.
	Status    int // of HTTP
	RequestID string
	Body      []byte // as it came

	ErrorCode    string
	ErrorMessage string
}

// AppendResult appends the result's JSON line, newline included, to dst.
//
// The body stands there byte for byte if it is JSON, save that newlines between its tokens become
// spaces, since a line can't hold them, and bytes that are not UTF-8 become U+FFFD, since one of
// them would spoil the whole file for its reader. A body that is no JSON becomes a string of its
// text.
func AppendResult(dst []byte, r Result) []byte {
	dst = appendIDs(dst, r)
	if r.Status == 0 {
		dst = append(dst, `,"response":null,"error":{"code":`...)
		dst = appendQuoted(dst, r.ErrorCode)
		dst = append(dst, `,"message":`...)
		dst = appendQuoted(dst, r.ErrorMessage)
		return append(dst, "}}\n"...)
	}
	dst = appendStatus(dst, r)
	dst = appendAnswer(dst, r.Body)
	return append(dst, ResultTail...)
}

// AppendResultHead appends what AppendResult puts before the body of an answer. A body in the form
// that BodyWriter gives it, and ResultTail, make the line whole.
func AppendResultHead(dst []byte, r Result) []byte { return appendStatus(appendIDs(dst, r), r) }

// ResultTail follows the body of an answer.
const ResultTail = "},\"error\":null}\n"

func appendIDs(dst []byte, r Result) []byte {
	dst = append(dst, `{"id":`...)
	dst = appendQuoted(dst, r.ID)
	dst = append(dst, `,"custom_id":`...)
	return append(dst, r.CustomID...)
}

func appendStatus(dst []byte, r Result) []byte {
	dst = append(dst, `,"response":{"status_code":`...)
	dst = strconv.AppendInt(dst, int64(r.Status), 10)
	dst = append(dst, `,"request_id":`...)
	dst = appendQuoted(dst, r.RequestID)
	return append(dst, `,"body":`...)
}

func appendAnswer(dst, body []byte) []byte {
	if !valid(body, answerDepth) {
		return appendQuoted(dst, body)
	}
	from := len(dst)
	dst = append(dst, body...)
	return append(dst[:from], ResultBody(dst[from:])...)
}

// ResultBody gives an answer's body, which is JSON, the form that it has within a result line: in
// place, if it can.
func ResultBody(body []byte) []byte {
	if !utf8.Valid(body) {
		body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
	}
	// Inside strings newlines are escaped, so every raw one stands between tokens.
	blank(body, '\n')
	blank(body, '\r')
	return body
}

func blank(b []byte, c byte) {
	for i := bytes.IndexByte(b, c); i >= 0; i = bytes.IndexByte(b, c) {
		b[i] = ' '
		b = b[i+1:]
	}
}

// CustomID returns what a custom_id's literal says. Two literals mean the same id exactly if it
// returns the same string.
func CustomID(literal []byte) string {
	return string(textOf(literal, nil))
}
