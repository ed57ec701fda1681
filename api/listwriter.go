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

// pageWriter sends an object with an array of data, item by item, so that no page is in memory
// while a slow client reads it. The answer starts when listBuffer is full or the page is complete;
// before that, an error can still be answered.
type pageWriter[T any] struct {
	out  *bufio.Writer
	sent int
}

func newPageWriter[T any](w http.ResponseWriter, object string) *pageWriter[T] {
	w.Header().Set("Content-Type", "application/json")
	p := &pageWriter[T]{out: bufio.NewWriterSize(w, listBuffer)}
	fmt.Fprintf(p.out, `{"object":%q,"data":[`, object) // into the empty buffer
	return p
}

// send writes an item.
func (p *pageWriter[T]) send(item T) error {
	encoded, err := json.Marshal(item)
	if err != nil {
		return fmt.Errorf("encode item: %w", err)
	}
	if p.sent > 0 {
		p.out.WriteByte(',') // its error remains for the next Write
	}
	p.sent++
	if _, err := p.out.Write(encoded); err != nil {
		return fmt.Errorf("send list: %w", err)
	}
	return nil
}

// end writes the members of rest, a struct, after the items.
func (p *pageWriter[T]) end(rest any) error {
	encoded, err := json.Marshal(rest)
	if err != nil {
		return fmt.Errorf("encode end of list: %w", err)
	}
	fmt.Fprintf(p.out, "],%s\n", encoded[1:])
	if err := p.out.Flush(); err != nil {
		return fmt.Errorf("send list: %w", err)
	}
	return nil
}

// listWriter sends one page of a listing in OpenAI's format.
type listWriter[T any] struct {
	*pageWriter[T]
	id func(T) string

	firstID, lastID string
}

func newListWriter[T any](w http.ResponseWriter, id func(T) string) *listWriter[T] {
	return &listWriter[T]{pageWriter: newPageWriter[T](w, "list"), id: id}
}

// send writes items.
func (l *listWriter[T]) send(items ...T) error {
	for _, item := range items {
		if l.lastID = l.id(item); l.sent == 0 {
			l.firstID = l.lastID
		}
		if err := l.pageWriter.send(item); err != nil {
			return err
		}
	}
	return nil
}

// end writes what follows the items.
func (l *listWriter[T]) end(more bool) error {
	return l.pageWriter.end(struct {
		FirstID *string `json:"first_id"`
		LastID  *string `json:"last_id"`
		HasMore bool    `json:"has_more"`
	}{orNull(l.firstID), orNull(l.lastID), more})
}
