package api

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
)

// listBuffer is the size of the part of a listing that is collected before its answer starts, in
// bytes.
const listBuffer = 8 << 10

// listWriter sends one page of a listing in OpenAI's format, item by item, so that no page is in
// memory while a slow client reads it. The answer starts when listBuffer is full or the page is
// complete; before that, an error can still be answered.
type listWriter[T any] struct {
	out  *bufio.Writer
	id   func(T) string
	sent int

	firstID, lastID string
}

func newListWriter[T any](w http.ResponseWriter, id func(T) string) *listWriter[T] {
	w.Header().Set("Content-Type", "application/json")
	l := &listWriter[T]{out: bufio.NewWriterSize(w, listBuffer), id: id}
	l.out.WriteString(`{"object":"list","data":[`) // into the empty buffer
	return l
}

// send writes items.
func (l *listWriter[T]) send(items ...T) error {
	for _, item := range items {
		encoded, err := json.Marshal(item)
		if err != nil {
			return fmt.Errorf("encode item: %w", err)
		}
		if l.lastID = l.id(item); l.sent == 0 {
			l.firstID = l.lastID
		} else {
			l.out.WriteByte(',') // its error remains for the next Write
		}
		l.sent++
		if _, err := l.out.Write(encoded); err != nil {
			return fmt.Errorf("send list: %w", err)
		}
	}
	return nil
}

// end writes what follows the items.
func (l *listWriter[T]) end(more bool) error {
	rest, err := json.Marshal(struct {
		FirstID *string `json:"first_id"`
		LastID  *string `json:"last_id"`
		HasMore bool    `json:"has_more"`
	}{orNull(l.firstID), orNull(l.lastID), more})
	if err != nil {
		return fmt.Errorf("encode end of list: %w", err)
	}
	fmt.Fprintf(l.out, "],%s\n", rest[1:])
	if err := l.out.Flush(); err != nil {
		return fmt.Errorf("send list: %w", err)
	}
	return nil
}
