package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"strconv"
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
	// Engine identifies how the models are served: it changes with the weights and the longest
	// context that the list names, and with whose engine it is.
	Engine string
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
		_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, mostModelBytes))
	}
	return list, nil
}

// readModels reads a list one model at a time, and stops when it has enough.
func readModels(from io.Reader, most int) (list ModelList, err error) {
	bounded := &io.LimitedReader{R: from, N: mostModelBytes}
	seen := map[string]bool{}
	read := 0
	engine := uint64(0)
	err = eachModel(json.NewDecoder(bounded), func(m listedModel) (more bool) {
		name := m.ID
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
			engine += m.digest() // in any order
		}
		return true
	})
	if errors.Is(err, io.ErrUnexpectedEOF) && bounded.N == 0 {
		err = fmt.Errorf("the answer is longer than %d bytes", mostModelBytes)
	}
	if err != nil {
		return ModelList{}, fmt.Errorf("the answer is no list of models: %w", err)
	}
	list.Engine = strconv.FormatUint(engine, 16)
	return list, nil
}

// listedModel is an entry of a list. Besides the name, servers may say which weights they serve
// under it, how long contexts may be, and whose engine it is.
type listedModel struct {
	ID      string          `json:"id"`
	Root    json.RawMessage `json:"root"`
	Longest json.RawMessage `json:"max_model_len"`
	Owner   json.RawMessage `json:"owned_by"`
}

func (m listedModel) digest() uint64 {
	digest := fnv.New64a()
	for _, part := range [][]byte{[]byte(m.ID), m.Root, m.Longest, m.Owner} {
		digest.Write(part)
		digest.Write([]byte{0})
	}
	return digest.Sum64()
}

func eachModel(in *json.Decoder, fn func(m listedModel) (more bool)) error {
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
			var m listedModel
			if err := in.Decode(&m); err != nil {
				return err
			}
			if !fn(m) {
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
