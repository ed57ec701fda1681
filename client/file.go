package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
)

// File is a file object of the API. Times are Unix seconds; 0: never.
type File struct {
	ID        string `json:"id"`
	Bytes     int64  `json:"bytes"`
	CreatedAt int64  `json:"created_at"`
	ExpiresAt int64  `json:"expires_at"`
	Filename  string `json:"filename"`
	Purpose   string `json:"purpose"`

	// Raw is the object as it was received.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler. It also sets Raw.
func (f *File) UnmarshalJSON(raw []byte) error {
	type plain File
	if err := json.Unmarshal(raw, (*plain)(f)); err != nil {
		return err
	}
	f.Raw = append(json.RawMessage(nil), raw...)
	return nil
}

// Upload streams an input file for batches. size is in bytes; -1: unknown.
func (c *Client) Upload(
	ctx context.Context, name string, content io.Reader, size int64,
) (File, error) {
	return c.UploadFor(ctx, "batch", name, content, size)
}

// UploadFor streams a file for a purpose that the API knows.
func (c *Client) UploadFor(
	ctx context.Context, purpose, name string, content io.Reader, size int64,
) (File, error) {
	var frame bytes.Buffer
	form := multipart.NewWriter(&frame)
	if err := form.WriteField("purpose", purpose); err != nil {
		return File{}, err
	}
	if _, err := form.CreateFormFile("file", name); err != nil {
		return File{}, err
	}
	head := bytes.Clone(frame.Bytes())
	frame.Reset()
	if err := form.Close(); err != nil {
		return File{}, err
	}
	length := int64(-1)
	if size >= 0 {
		length = int64(len(head)) + size + int64(frame.Len())
	}
	var f File
	err := c.call(ctx, request{
		method: http.MethodPost, path: "/v1/files", idempotent: true,
		body:   io.MultiReader(bytes.NewReader(head), content, &frame),
		length: length, contentType: form.FormDataContentType(),
	}, &f)
	if err != nil {
		return File{}, fmt.Errorf("upload %s: %w", name, err)
	}
	return f, nil
}

// File returns one file.
func (c *Client) File(ctx context.Context, id string) (f File, err error) {
	err = c.call(ctx, request{method: http.MethodGet, path: "/v1/files/" + url.PathEscape(id)}, &f)
	if err != nil {
		return File{}, fmt.Errorf("get file %s: %w", id, err)
	}
	return f, nil
}

// DeleteFile deletes a file and returns the API's answer.
func (c *Client) DeleteFile(ctx context.Context, id string) (answer json.RawMessage, err error) {
	err = c.call(ctx, request{method: http.MethodDelete, path: "/v1/files/" + url.PathEscape(id)},
		&answer)
	if err != nil {
		return nil, fmt.Errorf("delete file %s: %w", id, err)
	}
	return answer, nil
}

// Content returns the content of a file as a stream, which the caller closes.
func (c *Client) Content(ctx context.Context, id string) (io.ReadCloser, error) {
	answer, err := c.send(ctx, request{method: http.MethodGet, path: "/v1/files/" + url.PathEscape(
		id) + "/content"})
	if err != nil {
		return nil, fmt.Errorf("download %s: %w", id, err)
	}
	return answer.Body, nil
}
