package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

const (
	// mostModelBytes limits the bytes that are read of a list of models.
	mostModelBytes = 4 << 20
	// MostModelName limits a model's name, in bytes.
	MostModelName = 256
)

// ErrNoModelList reports that a server has no list of models: it answered 404, 405 or 501.
var ErrNoModelList = errors.New("the server has no list of models")

// ModelList lists the models that a server serves.
type ModelList struct {
	Names []string // each once, in the server's order
	Cut   bool     // more models, or models with longer names, were left out
}

// Models asks the server which models it serves, and returns at most so many names. The error is
// ErrNoModelList if the server can't say.
func (c *Client) Models(ctx context.Context, most int) (ModelList, error) {
	target := *c.base
	target.Path += "/v1/models"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return ModelList{}, err
	}
	for key, values := range c.header {
		req.Header[key] = values
	}
	response, err := c.transport.roundTrip(req, new(passage))
	if err != nil {
		return ModelList{}, fmt.Errorf("get %s: %w", target.Redacted(), err)
	}
	defer response.Body.Close()
	switch status := response.StatusCode; status {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return ModelList{}, fmt.Errorf("get %s: status %d: %w", target.Redacted(), status,
			ErrNoModelList)
	default:
		return ModelList{}, fmt.Errorf("get %s: status %d", target.Redacted(), status)
	}
	list, err := readModels(response.Body, most)
	if err == nil && len(list.Names) == 0 {
		err = errors.New("the answer names no model")
	}
	if err != nil {
		return ModelList{}, fmt.Errorf("get %s: %w", target.Redacted(), err)
	}
	if !list.Cut {
		// to its end, so that the connection can be used again
		io.Copy(io.Discard, io.LimitReader(response.Body, mostModelBytes))
	}
	return list, nil
}

// readModels reads a list one model at a time, and stops when it has enough.
func readModels(from io.Reader, most int) (list ModelList, err error) {
	bounded := &io.LimitedReader{R: from, N: mostModelBytes}
	seen := map[string]bool{}
	read := 0
	err = eachModel(json.NewDecoder(bounded), func(name string) (more bool) {
		switch read++; {
		case read > most:
			list.Cut = true
			return false
		case name == "" || seen[name]:
		case len(name) > MostModelName:
			list.Cut = true
		default:
			seen[name] = true
			list.Names = append(list.Names, name)
		}
		return true
	})
	if errors.Is(err, io.ErrUnexpectedEOF) && bounded.N == 0 {
		err = fmt.Errorf("the answer is longer than %d bytes", mostModelBytes)
	}
	if err != nil {
		return ModelList{}, fmt.Errorf("the answer is no list of models: %w", err)
	}
	return list, nil
}

func eachModel(in *json.Decoder, fn func(name string) (more bool)) error {
	if err := expect(in, '{'); err != nil {
		return err
	}
	for in.More() {
		key, err := in.Token()
		if err != nil {
			return err
		}
		if key != "data" {
			if err := in.Decode(new(json.RawMessage)); err != nil {
				return err
			}
			continue
		}
		if err := expect(in, '['); err != nil {
			return err
		}
		for in.More() {
			var m struct {
				ID string `json:"id"`
			}
			if err := in.Decode(&m); err != nil {
				return err
			}
			if !fn(m.ID) {
				return nil
			}
		}
		if err := expect(in, ']'); err != nil {
			return err
		}
	}
	return expect(in, '}')
}

func expect(in *json.Decoder, want json.Delim) error {
	token, err := in.Token()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err == nil && token != want {
		err = fmt.Errorf("%v instead of %v", token, want)
	}
	return err
}
