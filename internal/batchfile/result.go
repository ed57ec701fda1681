package batchfile

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// Result is one finished line of the output or the error file.
type Result struct {
	ID string // batch_req_…
	// CustomID is the string literal of the input line, with quotes and escapes as the user wrote
	// them.
	CustomID []byte

	// Status, RequestID and Body are the answer of the engine. Status 0: there was none.
	Status    int // of HTTP
	RequestID string
	Body      []byte // as received

	// ErrorCode and ErrorMessage say why there is no answer, or why it does not count. An empty
	// code: it does.
	ErrorCode    string
	ErrorMessage string
}

// AppendResult appends the result as one JSON line, newline included, to dst.
//
// A body that is JSON is copied byte for byte, with two exceptions: newlines between its tokens
// become spaces, because a line can't contain them, and bytes that are not UTF-8 become U+FFFD,
// because one of them would make the file unreadable for many programs. A body that is not JSON
// becomes a JSON string.
func AppendResult(dst []byte, r Result) []byte {
	dst = appendIDs(dst, r)
	if r.Status == 0 {
		dst = append(dst, `,"response":null`...)
	} else {
		dst = appendAnswer(appendStatus(dst, r), r.Body)
		if r.ErrorCode == "" {
			return append(dst, ResultTail...)
		}
		dst = append(dst, '}')
	}
	dst = append(dst, `,"error":{"code":`...)
	dst = appendQuoted(dst, r.ErrorCode)
	dst = append(dst, `,"message":`...)
	dst = appendQuoted(dst, r.ErrorMessage)
	return append(dst, "}}\n"...)
}

// AppendResultHead appends the part of AppendResult before the body of an answer. A body converted
// by BodyWriter, and ResultTail, complete the line.
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

// ResultBody converts an answer's body, which must be JSON, to its form within a result line (see
// AppendResult). It changes body in place if it is UTF-8.
func ResultBody(body []byte) []byte {
	if !utf8.Valid(body) {
		body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
	}
	// Newlines in strings are escaped, so every raw newline is between tokens.
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

// CustomID decodes the literal of a custom_id. Two literals mean the same id if and only if it
// returns the same string.
func CustomID(literal []byte) string {
	return string(textOf(literal, nil))
}
