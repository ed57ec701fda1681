package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// ResultPage holds some of the finished lines of a batch, in the format of the output and error
// files.
type ResultPage struct {
	Lines io.ReadCloser
	Next  string // where the next page begins
	More  bool   // the next page has lines already
	// Status is the status of the batch before the page was read. If the batch has ended and More
	// is false, this is the last page.
	Status string
}

// Results returns the lines that finished after the page whose Next is given. Empty: from the
// first. The caller closes ResultPage.Lines.
func (c *Client) Results(ctx context.Context, id, after string) (ResultPage, error) {
	q := url.Values{}
	if after != "" {
		q.Set("after", after)
	}
	//nolint:bodyclose // the caller closes it as ResultPage.Lines
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

// CopyResults writes the finished lines of a batch. With follow it continues until the batch has
// ended, and retries while the daemon is unreachable.
func (c *Client) CopyResults(ctx context.Context, id string, follow bool, out io.Writer) error {
	for after := ""; ; {
		var page ResultPage
		err := retry(ctx, func() (err error) {
			page, err = c.Results(ctx, id, after)
			return err
		})
		if err != nil {
			return err
		}
		_, err = io.Copy(out, page.Lines)
		page.Lines.Close()
		if err != nil {
			return fmt.Errorf("results of batch %s: %w", id, err)
		}
		after = page.Next
		if page.More {
			continue
		}
		if !follow || (Batch{Status: page.Status}).Ended() {
			return nil
		}
		if err := sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
}
