package api

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// listWriter sends one page of a listing in OpenAI's format, item by item, so that no page is in
// memory while a slow client reads it. The answer starts with the first item; before it, an error
// can still be answered.
type listWriter[T any] struct {
	out  http.ResponseWriter
	id   func(T) string
	sent int

	firstID, lastID string
}

// send writes items.
func (l *listWriter[T]) send(items ...T) error {
	for _, item := range items {
		encoded, err := json.Marshal(item)
		if err != nil {
			return fmt.Errorf("encode item: %w", err)
		}
		before := ","
		if l.lastID = l.id(item); l.sent == 0 {
			before, l.firstID = l.start(), l.lastID
		}
		l.sent++
		if err := l.write([]byte(before), encoded); err != nil {
			return err
		}
	}
	return nil
}

func (l *listWriter[T]) start() string {
	l.out.Header().Set("Content-Type", "application/json")
	return `{"object":"list","data":[`
}

// end writes what follows the items.
func (l *listWriter[T]) end(more bool) error {
	before := ""
	if l.sent == 0 {
		before = l.start()
	}
	rest, err := json.Marshal(struct {
		FirstID *string `json:"first_id"`
		LastID  *string `json:"last_id"`
		HasMore bool    `json:"has_more"`
	}{orNull(l.firstID), orNull(l.lastID), more})
	if err != nil {
		return fmt.Errorf("encode end of list: %w", err)
	}
	return l.write([]byte(before), []byte("],"), rest[1:], []byte("\n"))
}

func (l *listWriter[T]) write(pieces ...[]byte) error {
	for _, piece := range pieces {
		if _, err := l.out.Write(piece); err != nil {
			return fmt.Errorf("send list: %w", err)
		}
	}
	return nil
}
