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

// maxPage is the number of batches that AllBatches requests at once.
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
	return func(yield func(Batch, error) bool) {
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
			page, err := c.Batches(ctx, q)
			if err != nil {
				yield(Batch{}, err)
				return
			}
			for _, b := range page.Data {
				if !yield(b, nil) {
					return
				}
			}
			left -= len(page.Data)
			if !page.More || len(page.Data) == 0 || limit > 0 && left <= 0 {
				return
			}
			q.Set("after", page.Data[len(page.Data)-1].ID)
		}
	}
}
