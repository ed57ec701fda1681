package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// httpClient sends all requests to daemons, sinks and stubs.
var httpClient = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}}

// ask sends a request with question as JSON, and decodes the answer into answer. Either may be nil.
func ask(ctx context.Context, method, url string, question, answer any) error {
	var body io.Reader
	if question != nil {
		encoded, err := json.Marshal(question)
		if err != nil {
			return err
		}
		body = bytes.NewReader(encoded)
	}
	r, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return do(r, answer)
}

func do(r *http.Request, answer any) error {
	response, err := httpClient.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s: %.300s", r.Method, r.URL, response.Status, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}

// sendFile posts a file as the SDKs do, in a form with a Content-Length.
func sendFile(ctx context.Context, url, path string, answer any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var head bytes.Buffer
	form := multipart.NewWriter(&head)
	if _, err := form.CreateFormFile("file", filepath.Base(path)); err != nil {
		return err
	}
	start := bytes.Clone(head.Bytes())
	head.Reset()
	if err := errors.Join(form.WriteField("purpose", "batch"), form.Close()); err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, "POST", url, io.MultiReader(bytes.NewReader(start), f,
		&head))
	if err != nil {
		return err
	}
	r.ContentLength = int64(len(start)+head.Len()) + info.Size()
	r.Header.Set("Content-Type", form.FormDataContentType())
	return do(r, answer)
}

// pause waits for d or until the context ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
