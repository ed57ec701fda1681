package emulator

import (
	"encoding/json"
	"fmt"
)

// responseReply is /v1/responses.
type responseReply struct{}

type responseObject struct {
	ID                string             `json:"id"`
	Object            string             `json:"object"`
	CreatedAt         int64              `json:"created_at"`
	Status            string             `json:"status"`
	Error             *struct{}          `json:"error"`
	IncompleteDetails *incompleteDetails `json:"incomplete_details"`
	Instructions      *string            `json:"instructions"`
	MaxOutputTokens   *int               `json:"max_output_tokens"`
	Model             string             `json:"model"`
	Output            []outputMessage    `json:"output"`
	ParallelToolCalls bool               `json:"parallel_tool_calls"`
	Tools             []struct{}         `json:"tools"`
	Usage             *responseUsage     `json:"usage"`
}

type incompleteDetails struct {
	Reason string `json:"reason"`
}

type outputMessage struct {
	ID      string       `json:"id"`
	Type    string       `json:"type"`
	Status  string       `json:"status"`
	Role    string       `json:"role"`
	Content []outputText `json:"content"`
}

type outputText struct {
	Type        string     `json:"type"`
	Text        string     `json:"text"`
	Annotations []struct{} `json:"annotations"`
}

type responseUsage struct {
	InputTokens         int           `json:"input_tokens"`
	InputTokensDetails  inputDetails  `json:"input_tokens_details"`
	OutputTokens        int           `json:"output_tokens"`
	OutputTokensDetails outputDetails `json:"output_tokens_details"`
	TotalTokens         int           `json:"total_tokens"`
}

type inputDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

type outputDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

func (a *answer) messageID() string { return "msg_" + a.id }

// inProgress returns the response object before any output.
func (a *answer) inProgress() responseObject {
	r := responseObject{
		ID: "resp_" + a.id, Object: "response", CreatedAt: a.created.Unix(), Status: "in_progress",
		MaxOutputTokens: a.MaxOutputTokens, Model: a.Model,
		Output: []outputMessage{}, ParallelToolCalls: true, Tools: []struct{}{},
	}
	if a.Instructions != "" {
		r.Instructions = &a.Instructions
	}
	return r
}

// completed returns the response object with all of its output.
func (a *answer) completed() responseObject {
	r, q := a.inProgress(), a.sequences[0]
	r.Status = "completed"
	if q.finish == finishLength {
		r.Status, r.IncompleteDetails = "incomplete",
			&incompleteDetails{Reason: "max_output_tokens"}
	}
	r.Output = append(r.Output, a.message(r.Status, q))
	r.Usage = &responseUsage{
		InputTokens: q.tokens, InputTokensDetails: inputDetails{CachedTokens: a.cached},
		OutputTokens: q.output, TotalTokens: q.tokens + q.output,
	}
	return r
}

func (a *answer) message(status string, q sequence) outputMessage {
	return outputMessage{
		ID: a.messageID(), Type: "message", Status: status, Role: "assistant",
		Content: []outputText{newOutputText(string(appendWords(nil, q.seed, 0, q.output)))},
	}
}

func newOutputText(text string) outputText {
	return outputText{Type: "output_text", Text: text, Annotations: []struct{}{}}
}

func (responseReply) whole(a *answer) []byte { return mustJSON(a.completed()) }

func (responseReply) open(a *answer) []byte {
	item := outputMessage{ID: a.messageID(), Type: "message", Status: "in_progress",
		Role: "assistant", Content: []outputText{}}
	b := a.appendEvent(nil, "response.created", map[string]any{"response": a.inProgress()})
	b = a.appendEvent(b, "response.in_progress", map[string]any{"response": a.inProgress()})
	b = a.appendEvent(b, "response.output_item.added",
		map[string]any{"output_index": 0, "item": item})
	return a.appendEvent(b, "response.content_part.added", a.inPart("part", newOutputText("")))
}

func (responseReply) delta(a *answer, index, from, to int) []byte {
	text := string(appendWords(nil, a.sequences[index].seed, from, to))
	return a.appendEvent(nil, "response.output_text.delta", a.inPart("delta", text))
}

func (responseReply) close(a *answer) []byte {
	r := a.completed()
	item := r.Output[0]
	b := a.appendEvent(nil, "response.output_text.done", a.inPart("text", item.Content[0].Text))
	b = a.appendEvent(b, "response.content_part.done", a.inPart("part", item.Content[0]))
	b = a.appendEvent(b, "response.output_item.done",
		map[string]any{"output_index": 0, "item": item})
	return a.appendEvent(b, "response."+r.Status, map[string]any{"response": r})
}

// inPart returns the fields of an event about the only part of the only message.
func (a *answer) inPart(key string, value any) map[string]any {
	return map[string]any{"item_id": a.messageID(), "output_index": 0, "content_index": 0,
		key: value}
}

// appendEvent appends an event with its type and number.
func (a *answer) appendEvent(b []byte, name string, fields map[string]any) []byte {
	fields["type"], fields["sequence_number"] = name, a.events
	a.events++
	return fmt.Appendf(b, "event: %s\ndata: %s\n\n", name, mustJSON(fields))
}

// mustJSON encodes types that cannot fail to encode.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
