package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// CopyResultFiles writes the output and error files of an ended batch, one after the other.
func (c *Client) CopyResultFiles(ctx context.Context, b Batch, out io.Writer) error {
	for _, files := range b.Results() {
		for _, id := range []string{files.OutputFileID, files.ErrorFileID} {
			if id == "" {
				continue
			}
			if err := c.CopyFile(ctx, id, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// Download writes the result files of an ended batch into a directory, which is created if need be,
// and returns their names. A file gets its name when it is complete.
func (c *Client) Download(ctx context.Context, b Batch, dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var written []string
	for _, files := range b.Results() {
		prefix := b.ID
		if files.InputFileID != "" {
			prefix += "_" + files.InputFileID
		}
		for _, file := range []struct{ id, name string }{
			{files.OutputFileID, prefix + "_output.jsonl"},
			{files.ErrorFileID, prefix + "_errors.jsonl"},
		} {
			if file.id == "" {
				continue
			}
			name := filepath.Join(dir, file.name)
			if err := c.DownloadFile(ctx, file.id, name); err != nil {
				return written, err
			}
			written = append(written, name)
		}
	}
	return written, nil
}

// DownloadFile writes the content of a file of the API into a local one, which gets its name when
// it is complete.
func (c *Client) DownloadFile(ctx context.Context, id, name string) (err error) {
	part, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.part")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, part.Close(), os.Remove(part.Name()))
		}
	}()
	if err := c.CopyFile(ctx, id, part); err != nil {
		return err
	}
	if err := part.Chmod(0o644); err != nil {
		return err
	}
	if err := part.Close(); err != nil {
		return err
	}
	return os.Rename(part.Name(), name)
}

// CopyFile writes the content of a file of the API.
func (c *Client) CopyFile(ctx context.Context, id string, out io.Writer) error {
	content, err := c.Content(ctx, id)
	if err != nil {
		return err
	}
	defer content.Close()
	if _, err := io.Copy(out, content); err != nil {
		return fmt.Errorf("download %s: %w", id, err)
	}
	return nil
}
