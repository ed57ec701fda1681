package emulator

import (
	"fmt"
	"strconv"
)

// The bodies of generated text are written without encoding/json: ids and words need no escaping,
// and model names are JSON already. So an instant response is as cheap as a stub's.

// usage appends the usage object of chat and completion responses.
func (a *answer) usage(b []byte) []byte {
	prompt, output := a.promptTokens(), a.outputTokens()
	return fmt.Appendf(
		b, `"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}`,
		prompt, output, prompt+output, a.cached)
}

// head appends the beginning of an object of chat and completion responses.
func (a *answer) head(b []byte, prefix, object string) []byte {
	b = append(b, `{"id":"`...)
	b = append(append(b, prefix...), a.id...)
	b = append(b, `","object":"`...)
	b = append(b, object...)
	b = append(b, `","created":`...)
	b = strconv.AppendInt(b, a.created.Unix(), 10)
	b = append(b, `,"model":`...)
	return append(b, a.modelJSON...)
}

// event wraps what add appends as a server-sent event.
func event(b []byte, add func([]byte) []byte) []byte {
	return append(add(append(b, "data: "...)), "\n\n"...)
}

const done = "data: [DONE]\n\n"

// usageEvent appends the usage event before the end, if it was requested.
func (a *answer) usageEvent(b []byte, prefix, object string) []byte {
	if !a.StreamOptions.IncludeUsage {
		return b
	}
	return event(b, func(b []byte) []byte {
		b = append(a.head(b, prefix, object), `,"choices":[],`...)
		return append(a.usage(b), '}')
	})
}

// chatReply is /v1/chat/completions.
type chatReply struct{}

const (
	chatID    = "chatcmpl-"
	chatChunk = "chat.completion.chunk"
)

func (chatReply) whole(a *answer) []byte {
	b := a.head(make([]byte, 0, 512+8*a.outputTokens()), chatID, "chat.completion")
	b = append(b, `,"choices":[`...)
	for i, q := range a.sequences {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"index":`...)
		b = strconv.AppendInt(b, int64(i), 10)
		b = append(b, `,"message":{"role":"assistant","content":"`...)
		b = appendWords(b, q.seed, 0, q.output)
		b = append(b, `","refusal":null},"logprobs":null,"finish_reason":"`...)
		b = append(b, q.finish...)
		b = append(b, `"}`...)
	}
	return append(a.usage(append(b, `],`...)), '}')
}

func (chatReply) open(a *answer) (b []byte) {
	for i := range a.sequences {
		b = event(b, func(b []byte) []byte {
			return fmt.Appendf(a.head(b, chatID, chatChunk),
				`,"choices":[{"index":%d,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}`, i)
		})
	}
	return b
}

func (chatReply) delta(a *answer, index, from, to int) []byte {
	q := a.sequences[index]
	b := event(nil, func(b []byte) []byte {
		b = fmt.Appendf(a.head(b, chatID, chatChunk),
			`,"choices":[{"index":%d,"delta":{"content":"`, index)
		return append(appendWords(b, q.seed, from, to),
			`"},"logprobs":null,"finish_reason":null}]}`...)
	})
	if to < q.output {
		return b
	}
	return event(b, func(b []byte) []byte {
		return fmt.Appendf(a.head(b, chatID, chatChunk),
			`,"choices":[{"index":%d,"delta":{},"logprobs":null,"finish_reason":%q}]}`, index,
			q.finish)
	})
}

func (chatReply) close(a *answer) []byte {
	return append(a.usageEvent(nil, chatID, chatChunk), done...)
}

// completionReply is /v1/completions.
type completionReply struct{}

const (
	completionID   = "cmpl-"
	completionType = "text_completion"
)

func (completionReply) whole(a *answer) []byte {
	b := a.head(make([]byte, 0, 512+8*a.outputTokens()), completionID, completionType)
	b = append(b, `,"choices":[`...)
	for i, q := range a.sequences {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"index":%d,"text":"`, i)
		b = appendWords(b, q.seed, 0, q.output)
		b = fmt.Appendf(b, `","logprobs":null,"finish_reason":%q}`, q.finish)
	}
	return append(a.usage(append(b, `],`...)), '}')
}

func (completionReply) open(*answer) []byte { return nil }

func (completionReply) delta(a *answer, index, from, to int) []byte {
	q := a.sequences[index]
	return event(nil, func(b []byte) []byte {
		b = fmt.Appendf(a.head(b, completionID, completionType), `,"choices":[{"index":%d,"text":"`,
			index)
		b = append(appendWords(b, q.seed, from, to), `","logprobs":null,"finish_reason":`...)
		if to < q.output {
			return append(b, `null}]}`...)
		}
		return fmt.Appendf(b, `%q}]}`, q.finish)
	})
}

func (completionReply) close(a *answer) []byte {
	return append(a.usageEvent(nil, completionID, completionType), done...)
}
