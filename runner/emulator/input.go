package emulator

import (
	"encoding/json"
	"fmt"
)

func missing(param string) *failure {
	return badRequest(param, "Missing required parameter: '%s'.", param)
}

func readChat(req *inference) ([]prompt, *failure) {
	if len(req.PromptTokenIDs) > 0 {
		return []prompt{tokenIDs(req.PromptTokenIDs)}, nil
	}
	if len(req.Messages) == 0 {
		return nil, missing("messages")
	}
	p, err := conversation(req.Messages)
	if err != nil {
		return nil, badRequest("messages", "messages: %v.", err)
	}
	return []prompt{p}, nil
}

func readCompletion(req *inference) ([]prompt, *failure) {
	if len(req.PromptTokenIDs) > 0 {
		return []prompt{tokenIDs(req.PromptTokenIDs)}, nil
	}
	return required("prompt", req.Prompt)
}

func readResponse(req *inference) ([]prompt, *failure) {
	if firstByte(req.Input) == 0 {
		return nil, missing("input")
	}
	req.N = nil // has no meaning here
	p := text(req.Instructions)
	if firstByte(req.Input) == '"' {
		if err := p.add(req.Input); err != nil {
			return nil, badRequest("input", "input: %v.", err)
		}
		return []prompt{p}, nil
	}
	var items []message
	if json.Unmarshal(req.Input, &items) != nil || len(items) == 0 {
		return nil, badRequest("input", "input must be a string or an array of items.")
	}
	talk, err := conversation(items)
	if err != nil {
		return nil, badRequest("input", "input: %v.", err)
	}
	talk.data = append(p.data, talk.data...)
	return []prompt{talk}, nil
}

func readEmbedding(req *inference) ([]prompt, *failure) {
	if req.Dimensions < 0 || req.Dimensions > 8192 {
		return nil, badRequest("dimensions", "dimensions is %d, want 1 to 8192.", req.Dimensions)
	}
	switch req.EncodingFormat {
	case "", "float", "base64":
	default:
		return nil, badRequest("encoding_format", "encoding_format is %q, want float or base64.",
			req.EncodingFormat)
	}
	return required("input", req.Input)
}

func readModeration(req *inference) ([]prompt, *failure) { return required("input", req.Input) }

func readRerank(req *inference) ([]prompt, *failure) {
	if req.Query == "" {
		return nil, missing("query")
	}
	documents, f := required("documents", req.Documents)
	return pairs([]prompt{text(req.Query)}, documents), f
}

func readScore(req *inference) ([]prompt, *failure) {
	left, f := required("text_1", req.Text1)
	if f != nil {
		return nil, f
	}
	right, f := required("text_2", req.Text2)
	if f != nil {
		return nil, f
	}
	if len(left) != 1 && len(left) != len(right) {
		return nil, badRequest("text_1", "text_1 has %d and text_2 %d texts; want one, or as many.",
			len(left), len(right))
	}
	return pairs(left, right), nil
}

// pairs joins each right text with its left one, or with the only left one.
func pairs(left, right []prompt) []prompt {
	all := make([]prompt, len(right))
	for i, r := range right {
		l := left[i%len(left)]
		all[i] = prompt{data: fmt.Appendf(nil, "%s\n%s", l.data, r.data), extra: l.extra + r.extra}
	}
	return all
}

func required(param string, raw json.RawMessage) ([]prompt, *failure) {
	if c := firstByte(raw); c == 0 || c == 'n' {
		return nil, missing(param)
	}
	all, err := inputs(raw)
	if err != nil {
		return nil, badRequest(param, "%s %v.", param, err)
	}
	if len(all) == 0 {
		return nil, badRequest(param, "%s is empty.", param)
	}
	return all, nil
}
