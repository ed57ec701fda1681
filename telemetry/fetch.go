package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"time"
)

// errUnknownPage reports that a server does not have the page that was requested.
var errUnknownPage = errors.New("the server has no such page")

// largestPage limits the size of a metrics page, in bytes. vLLM's has about 100 KB.
const largestPage = 16 << 20

// fetch requests a page. taken estimates when the server produced it: the middle of the request.
func fetch(
	ctx context.Context, client *http.Client, url string, header http.Header, accept string,
) (body []byte, response *http.Response, taken time.Time, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, nil, time.Time{}, err
	}
	maps.Copy(request.Header, header)
	request.Header.Set("Accept", accept)
	sent := time.Now()
	response, err = client.Do(request)
	if err != nil {
		return nil, nil, time.Time{}, err
	}
	defer response.Body.Close()
	taken = sent.Add(time.Since(sent) / 2)
	body, err = io.ReadAll(io.LimitReader(response.Body, largestPage+1))
	switch {
	case err != nil:
		return nil, nil, taken, fmt.Errorf("read %s: %w", url, err)
	case len(body) > largestPage:
		return nil, nil, taken, fmt.Errorf("read %s: the page is larger than %d bytes", url,
			largestPage)
	case response.StatusCode == http.StatusNotFound ||
		response.StatusCode == http.StatusMethodNotAllowed ||
		response.StatusCode == http.StatusNotImplemented:
		return nil, nil, taken, fmt.Errorf("get %s: status %d: %w", url, response.StatusCode,
			errUnknownPage)
	case response.StatusCode != http.StatusOK:
		return nil, nil, taken, fmt.Errorf("get %s: status %d: %.200s", url, response.StatusCode,
			body)
	}
	return body, response, taken, nil
}
