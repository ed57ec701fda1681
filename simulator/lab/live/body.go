package live

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tidefill/tidefill/simulator/workload"
)

// completion is the body of a request for a text completion. The answer has as many tokens as
// MinTokens, because the runners would end it after one. No field limits it, so nobody but the
// runner knows its length beforehand.
type completion struct {
	Model     string `json:"model"`
	Prompt    string `json:"prompt"`
	MinTokens int    `json:"min_tokens"`
	Stream    bool   `json:"stream,omitempty"`
}

// newBody returns the body of a request as the workload describes it. number distinguishes it from
// others.
func newBody(r workload.Request, number uint64, stream bool) ([]byte, error) {
	return json.Marshal(completion{Model: servedModel, Prompt: prompt(r, number),
		MinTokens: r.Output, Stream: stream})
}

// bytesPerToken is the number of bytes of text that the runners count as one token.
const bytesPerToken = 3.6

// prompt returns text of a length in tokens that begins with the segments which the request shares
// with others, and continues with text of its own.
func prompt(r workload.Request, number uint64) string {
	size := int(math.Floor(float64(r.Input) * bytesPerToken))
	text := make([]byte, 0, max(1, size))
	if r.Segment > 0 {
		segment := int(float64(r.Segment) * bytesPerToken)
		for _, name := range r.Prefix {
			text = appendText(text, min(size, len(text)+segment), name)
		}
	}
	return string(appendText(text, max(1, size), ^number))
}

// appendText appends text that seed determines until it has a size.
func appendText(text []byte, size int, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	for len(text) < size {
		text = fmt.Appendf(text, "%016x", rng.Uint64())
	}
	return text[:max(size, 0)]
}
