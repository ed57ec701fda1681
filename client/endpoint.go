package client

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"io"
)

// DefaultEndpoint is the endpoint of batches of chat completions.
const DefaultEndpoint = "/v1/chat/completions"

// FirstEndpoint reads the url of the first line of an input file, for BatchRequest.Endpoint. It
// returns DefaultEndpoint if the line has none, and a reader of the file from its beginning.
func FirstEndpoint(in io.Reader) (endpoint string, file io.Reader, err error) {
	buffered := bufio.NewReaderSize(in, 64<<10)
	var read bytes.Buffer
	for {
		line, err := buffered.ReadBytes('\n')
		read.Write(line)
		line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF")))
		if len(line) == 0 && err == nil {
			continue
		}
		if err != nil && err != io.EOF {
			return "", nil, err
		}
		var first struct{ URL string }
		// The API reports an invalid first line with all other errors. It requires an endpoint.
		_ = json.Unmarshal(line, &first)
		return cmp.Or(first.URL, DefaultEndpoint), io.MultiReader(&read, buffered), nil
	}
}
