package api

import (
	"fmt"
	"net/http"

	"github.com/tidefill/tidefill/store"
)

const maxFilePage = 10_000

// filePage is how many rows a listing reads at a time: rows of batch inputs bring their faults with them.
const filePage = 200

func (s *Server) listFiles(w http.ResponseWriter, r *http.Request) error {
	query, err := readFileQuery(r)
	if err != nil {
		return err
	}
	list := listObject[fileObject]{Object: "list", Data: []fileObject{}}
	for left := query.Limit; left > 0; left = query.Limit - len(list.Data) {
		q := query
		q.Limit = min(left, filePage)
		if n := len(list.Data); n > 0 {
			q.After = list.Data[n-1].ID
		}
		page, err := s.meta.ListFiles(r.Context(), tenantOf(r.Context()), q)
		if err != nil {
			return fmt.Errorf("list files: %w", err)
		}
		for _, f := range page.Items {
			list.Data = append(list.Data, showFile(f))
		}
		if list.HasMore = page.More; !page.More {
			break
		}
	}
	if n := len(list.Data); n > 0 {
		list.FirstID, list.LastID = &list.Data[0].ID, &list.Data[n-1].ID
	}
	return writeJSON(w, list)
}

// listObject is one page of a listing.
type listObject[T any] struct {
	Object  string  `json:"object"`
	Data    []T     `json:"data"`
	FirstID *string `json:"first_id"`
	LastID  *string `json:"last_id"`
	HasMore bool    `json:"has_more"`
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
