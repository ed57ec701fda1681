package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
)

const endpoint = "/v1/chat/completions"

// sampleBatch returns a batch file of n chat requests of three kinds that load an engine
// differently: short labels, summaries of medium length, and longer texts.
func sampleBatch(n int) []byte {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	type body struct {
		Model     string    `json:"model"`
		Messages  []message `json:"messages"`
		MaxTokens int       `json:"max_tokens"`
	}
	type line struct {
		CustomID string `json:"custom_id"`
		Method   string `json:"method"`
		URL      string `json:"url"`
		Body     body   `json:"body"`
	}
	kinds := []struct {
		name, system, user string
		maxTokens          int
	}{
		{"label", "Answer with one word: positive, negative or neutral.",
			"Review %d: %s arrived late, but it works well.", 5},
		{"summary", "Summarize the ticket in two sentences.",
			"Ticket %d: after the update, %s stops after an hour and has to be restarted by hand.",
			120},
		{"text", "You write for a catalogue.",
			"Text %d: describe %s for people who have never seen one.", 400},
	}
	things := []string{"the tide clock", "the storm lantern", "the folding kayak",
		"the harbour crane", "the fog horn", "the depth sounder", "the sail loft"}

	var file bytes.Buffer
	encoder := json.NewEncoder(&file) // to memory, where nothing fails
	for i := range n {
		kind := kinds[i%len(kinds)]
		_ = encoder.Encode(line{
			CustomID: fmt.Sprintf("%s-%04d", kind.name, i+1), Method: "POST", URL: endpoint,
			Body: body{
				Model: model, MaxTokens: kind.maxTokens,
				Messages: []message{{"system", kind.system}, {"user", fmt.Sprintf(
					kind.user, i+1, things[i%len(things)])}},
			},
		})
	}
	return file.Bytes()
}
