package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"time"
)

// request is what fetch asks a server for.
type request struct {
	url    string
	header http.Header
	accept string
	limit  int64 // of the answer in bytes, after decompression
	last   bool  // the connection is not kept for further requests
}

// fetch requests a page and hands it to parse, which need not read all of it. taken estimates when
// the server produced it: the middle of the request. Errors show no credentials. The context limits
// the time of all of it.
func fetch(
	ctx context.Context, client *http.Client, ask request,
	parse func(header http.Header, body io.Reader) error,
) (taken time.Time, err error) {
	shown := shownURL(ask.url)
	to, err := http.NewRequestWithContext(ctx, http.MethodGet, ask.url, nil)
	if err != nil {
		return taken, fmt.Errorf("get %s: %w", shown, errGarbled)
	}
	maps.Copy(to.Header, ask.header)
	to.Header.Set("Accept", ask.accept)
	to.Close = ask.last
	defer func() { err = withoutSecrets(err, to.Header) }()
	sent := time.Now()
	response, err := client.Do(to)
	if err != nil {
		return taken, withoutQuery(err)
	}
	defer response.Body.Close()
	taken = sent.Add(time.Since(sent) / 2)
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return taken, fmt.Errorf("get %s: status %d: %w", shown, response.StatusCode,
			errUnknownPage)
	case http.StatusServiceUnavailable:
		return taken, fmt.Errorf("get %s: status %d: %w", shown, response.StatusCode,
			errUnavailable)
	case http.StatusUnauthorized, http.StatusForbidden:
		return taken, fmt.Errorf("get %s: status %d: %w; check the key of the upstream", shown,
			response.StatusCode, errRefused)
	default:
		start, _ := io.ReadAll(io.LimitReader(response.Body, 200))
		return taken, fmt.Errorf("get %s: status %d: %q", shown, response.StatusCode, start)
	}
	err = parse(response.Header, http.MaxBytesReader(nil, response.Body, ask.limit))
	if large := new(http.MaxBytesError); errors.As(err, &large) {
		err = fmt.Errorf("the page is larger than %d bytes: %w", ask.limit, errTooLarge)
	}
	if err != nil {
		return taken, fmt.Errorf("read %s: %w", shown, err)
	}
	return taken, nil
}

// withoutQuery returns an error of an http.Client with its URL as shownURL returns it: the client
// removes the password alone.
func withoutQuery(err error) error {
	failed := new(url.Error)
	if !errors.As(err, &failed) {
		return err
	}
	return &url.Error{Op: failed.Op, URL: shownURL(failed.URL), Err: failed.Err}
}

// shownURL returns a URL without its password and its query, for errors and logs.
func shownURL(text string) string {
	parsed, err := url.Parse(text)
	if err != nil {
		return "a URL that can't be parsed"
	}
	parsed.RawQuery, parsed.Fragment = "", ""
	return parsed.Redacted()
}
