package answercheck

import (
	"encoding/json"
	"strings"
)

// choice is one of the texts of an answer.
type choice struct{ text, reason string }

// HasText reports whether the answers of an endpoint have texts to check.
func HasText(url string) bool { return readers[url] != nil }

// readers return the choices of an answer, by endpoint.
var readers = map[string]func(body []byte) []choice{
	"/v1/chat/completions": readChat,
	"/v1/completions":      readCompletion,
	"/v1/responses":        readResponse,
}

// choicesOf returns the choices of an answer; none: it has none, or is of another form.
func choicesOf(url string, body []byte) []choice {
	if read := readers[url]; read != nil {
		return read(body)
	}
	return nil
}

func readChat(body []byte) (choices []choice) {
	var answer struct {
		Choices []struct {
			Message struct {
				Content any `json:"content"`
			} `json:"message"`
			FinishReason any `json:"finish_reason"`
		} `json:"choices"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return nil
	}
	for _, c := range answer.Choices {
		choices = append(choices, choice{text(c.Message.Content), reason(c.FinishReason)})
	}
	return choices
}

func readCompletion(body []byte) (choices []choice) {
	var answer struct {
		Choices []struct {
			Text         any `json:"text"`
			FinishReason any `json:"finish_reason"`
		} `json:"choices"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return nil
	}
	for _, c := range answer.Choices {
		choices = append(choices, choice{text(c.Text), reason(c.FinishReason)})
	}
	return choices
}

// readResponse returns the output_text of a response as its only choice. Its finish_reason is that
// which a chat completion would have.
func readResponse(body []byte) []choice {
	var answer struct {
		Status     any `json:"status"`
		Incomplete *struct {
			Reason any `json:"reason"`
		} `json:"incomplete_details"`
		Output []struct {
			Type    any `json:"type"`
			Content []struct {
				Type any `json:"type"`
				Text any `json:"text"`
			} `json:"content"`
		} `json:"output"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return nil
	}
	var whole strings.Builder
	for _, item := range answer.Output {
		for _, part := range item.Content {
			if item.Type == "message" && part.Type == "output_text" {
				whole.WriteString(text(part.Text))
			}
		}
	}
	why := reason(answer.Status)
	switch {
	case why == "completed":
		why = "stop"
	case why == "incomplete" && answer.Incomplete != nil:
		if why = reason(answer.Incomplete.Reason); why == "max_output_tokens" {
			why = "length"
		}
	}
	return []choice{{whole.String(), why}}
}

// text returns a text, or those of a list of parts.
func text(content any) string {
	switch content := content.(type) {
	case string:
		return content
	case []any:
		var whole strings.Builder
		for _, part := range content {
			if members, is := part.(map[string]any); is {
				whole.WriteString(text(members["text"]))
			}
		}
		return whole.String()
	}
	return ""
}

func reason(value any) string {
	if text, is := value.(string); is {
		return text
	}
	return "null"
}
