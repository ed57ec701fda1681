package batchfile

// Usage is the number of tokens of an answer as the engine reports it, with the names of the
// Responses API.
type Usage struct {
	InputTokens     int64
	OutputTokens    int64
	TotalTokens     int64
	CachedTokens    int64 // part of the input, found in the prefix cache
	ReasoningTokens int64 // part of the output
}

// Add adds another usage.
func (u *Usage) Add(other Usage) {
	u.InputTokens += other.InputTokens
	u.OutputTokens += other.OutputTokens
	u.TotalTokens += other.TotalTokens
	u.CachedTokens += other.CachedTokens
	u.ReasoningTokens += other.ReasoningTokens
}

// ReadUsage reads the member "usage" of an answer, with the names of chat and completions
// (prompt_tokens, completion_tokens) or of responses (input_tokens, output_tokens). It reports
// whether there is one. It does not read what follows the member.
func ReadUsage(body []byte) (Usage, bool) {
	i := skipSpace(body, 0)
	if i == len(body) || body[i] != '{' {
		return Usage{}, false
	}
	for m := membersAt(body, i); ; {
		key, more, err := m.next()
		if err != nil || !more {
			return Usage{}, false
		}
		if string(inside(key.of(body))) == "usage" {
			return readUsage(body, m.at)
		}
		if m.at, err = skipValue(body, m.at, answerDepth); err != nil {
			return Usage{}, false
		}
	}
}

// ParseUsage reads the value of an answer's member "usage", as ReadUsage does.
func ParseUsage(value []byte) (Usage, bool) { return readUsage(value, skipSpace(value, 0)) }

func readUsage(body []byte, i int) (Usage, bool) {
	var u Usage
	ok := eachMember(body, i, func(key, value []byte) {
		switch string(key) {
		case "prompt_tokens", "input_tokens":
			u.InputTokens = count(value)
		case "completion_tokens", "output_tokens":
			u.OutputTokens = count(value)
		case "total_tokens":
			u.TotalTokens = count(value)
		case "prompt_tokens_details", "input_tokens_details":
			eachMember(value, 0, func(key, value []byte) {
				if string(key) == "cached_tokens" {
					u.CachedTokens = count(value)
				}
			})
		case "completion_tokens_details", "output_tokens_details":
			eachMember(value, 0, func(key, value []byte) {
				if string(key) == "reasoning_tokens" {
					u.ReasoningTokens = count(value)
				}
			})
		}
	})
	if !ok {
		return Usage{}, false
	}
	if u.TotalTokens == 0 {
		u.TotalTokens = u.InputTokens + u.OutputTokens
	}
	return u, true
}

// eachMember calls fn with the members of the object at b[i], with keys without quotes. It reports
// whether the object is valid.
func eachMember(b []byte, i int, fn func(key, value []byte)) bool {
	if i >= len(b) || b[i] != '{' {
		return false
	}
	for m := membersAt(b, i); ; {
		key, more, err := m.next()
		if err != nil || !more {
			return err == nil
		}
		start := m.at
		if m.at, err = skipValue(b, start, answerDepth); err != nil {
			return false
		}
		fn(inside(key.of(b)), b[start:m.at])
	}
}
