package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// ResultPage is some of the lines that a batch has finished, in the shape of the output and error
// files.
type ResultPage struct {
	Lines io.ReadCloser
	Next  string // where the page after this one begins
	More  bool   // that page has lines already
	// Status of the batch before the page was read: when the batch has ended and there is no more,
	// this was the last page.
	Status string
}

// Results returns the lines finished since the page that gave after; empty: from the first.
func (c *Client) Results(ctx context.Context, id, after string) (ResultPage, error) {
	q := url.Values{}
	if after != "" {
		q.Set("after", after)
	}
	answer, err := c.send(ctx, request{method: http.MethodGet, path: batchPath(id) + "/results",
		query: q})
	if err != nil {
		return ResultPage{}, fmt.Errorf("results of batch %s: %w", id, err)
	}
	return ResultPage{
		Lines:  answer.Body,
		Next:   answer.Header.Get("Tidefill-Next"),
		More:   answer.Header.Get("Tidefill-More") == "true",
		Status: answer.Header.Get("Tidefill-Batch-Status"),
	}, nil
}
