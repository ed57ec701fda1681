package api

import (
	"fmt"
	"net/http"

	"github.com/tidefill/tidefill/store"
)

const maxFilePage = 10_000

// filesAtOnce is the number of files of a listing that are in memory at once.
const filesAtOnce = 200

func (s *Server) listFiles(w http.ResponseWriter, r *http.Request) error {
	q, err := readFileQuery(r)
	if err != nil {
		return err
	}
	list := newListWriter(w, func(f fileObject) string { return f.ID })
	for left := q.Limit; ; {
		q.Limit = min(left, filesAtOnce)
		page, err := s.meta.ListFiles(r.Context(), tenantOf(r.Context()), q)
		if err != nil {
			return fmt.Errorf("list files: %w", err)
		}
		for _, f := range page.Items {
			if err := list.send(showFile(f)); err != nil {
				return fmt.Errorf("list files: %w", err)
			}
		}
		if left -= len(page.Items); left == 0 || !page.More {
			return list.end(page.More)
		}
		q.After, q.Next = "", page.Next
	}
}

func readFileQuery(r *http.Request) (store.FileQuery, error) {
	values := r.URL.Query()
	q := store.FileQuery{Purpose: values.Get("purpose"), After: values.Get("after")}
	var err error
	if q.Limit, err = readLimit(values, maxFilePage, maxFilePage); err != nil {
		return q, err
	}
	q.Ascending, err = readOrder(values)
	return q, err
}
