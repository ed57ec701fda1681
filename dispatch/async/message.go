package async

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// requestHead is what precedes the body of a request: one row of JSON.
type requestHead struct {
	Method string      `json:"method"`
	Path   string      `json:"path"` // of the endpoint, beginning with /v1/
	Header http.Header `json:"header"`
}

// answerHead is what precedes the body of an answer: one row of JSON.
type answerHead struct {
	Status int         `json:"status,omitempty"` // 0: there is no answer
	Header http.Header `json:"header,omitempty"`
	Error  string      `json:"error,omitempty"` // why there is none, or not all of its body
	// Sent reports that the engine may have received the request, though there is no answer.
	Sent bool `json:"sent,omitempty"`
}

// lostAnswer is the answer of an item whose worker is gone. It has no body.
const lostAnswer = `{"error":"the worker has gone while it held the request","sent":true}`

// encode joins a head and a body.
func encode(head any, body []byte) ([]byte, error) {
	first, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("encode the head of a message: %w", err)
	}
	return append(append(first, '\n'), body...), nil
}

// decode reads a head, and returns the body behind it.
func decode(message []byte, head any) (body []byte, err error) {
	first, body, _ := bytes.Cut(message, []byte("\n"))
	if err := json.Unmarshal(first, head); err != nil {
		return nil, fmt.Errorf("decode the head of a message: %w", err)
	}
	return body, nil
}

// err returns why there is no answer, or not all of it; nil: there is.
func (a answerHead) err() error {
	if a.Error == "" {
		return nil
	}
	return errors.New(a.Error)
}
