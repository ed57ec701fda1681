package client

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strconv"
)

// maxPage is the number of objects that AllBatches and AllFiles request at once.
const maxPage = 100

// Page is one page of a list.
type Page[T any] struct {
	Data []T  `json:"data"`
	More bool `json:"has_more"`
}

// Batches returns a page of batches. The query has the API's parameters, such as limit, after and
// status.
func (c *Client) Batches(ctx context.Context, query url.Values) (Page[Batch], error) {
	var page Page[Batch]
	if err := c.call(ctx, request{method: http.MethodGet, path: "/v1/batches", query: query},
		&page); err != nil {
		return Page[Batch]{}, fmt.Errorf("list batches: %w", err)
	}
	return page, nil
}

// AllBatches returns the batches of a query page by page, at most limit of them; 0: all. The query
// has no limit and after. The sequence ends after an error.
func (c *Client) AllBatches(
	ctx context.Context, query url.Values, limit int,
) iter.Seq2[Batch, error] {
	return all(ctx, query, limit, c.Batches, func(b Batch) string { return b.ID })
}

// Files returns a page of files. The query has the API's parameters: limit, after, order, purpose.
func (c *Client) Files(ctx context.Context, query url.Values) (Page[File], error) {
	var page Page[File]
	if err := c.call(ctx, request{method: http.MethodGet, path: "/v1/files", query: query},
		&page); err != nil {
		return Page[File]{}, fmt.Errorf("list files: %w", err)
	}
	return page, nil
}

// AllFiles returns the files of a query as AllBatches returns batches.
func (c *Client) AllFiles(
	ctx context.Context, query url.Values, limit int,
) iter.Seq2[File, error] {
	return all(ctx, query, limit, c.Files, func(f File) string { return f.ID })
}

// Models returns the ids of the models that are served now.
func (c *Client) Models(ctx context.Context) (ids []string, err error) {
	var page Page[struct {
		ID string `json:"id"`
	}]
	err = c.call(ctx, request{method: http.MethodGet, path: "/v1/models"}, &page)
	for _, m := range page.Data {
		ids = append(ids, m.ID)
	}
	return ids, err
}

// all returns the objects of a query page by page.
func all[T any](
	ctx context.Context, query url.Values, limit int,
	list func(context.Context, url.Values) (Page[T], error), id func(T) string,
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		q := maps.Clone(query)
		if q == nil {
			q = url.Values{}
		}
		for left := limit; ; {
			size := maxPage
			if limit > 0 {
				size = min(size, left)
			}
			q.Set("limit", strconv.Itoa(size))
			page, err := list(ctx, q)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, of := range page.Data {
				if !yield(of, nil) {
					return
				}
			}
			left -= len(page.Data)
			if !page.More || len(page.Data) == 0 || limit > 0 && left <= 0 {
				return
			}
			q.Set("after", id(page.Data[len(page.Data)-1]))
		}
	}
}
