package batchfile

// Usage is what an engine says an answer cost, in tokens, under the names of the Responses API.
type Usage struct {
	InputTokens     int64
	OutputTokens    int64
	TotalTokens     int64
	CachedTokens    int64 // of the input, those found in the prefix cache
	ReasoningTokens int64 // of the output, those spent on reasoning
}

// Add sums two usages.
func (u *Usage) Add(other Usage) {
	u.InputTokens += other.InputTokens
	u.OutputTokens += other.OutputTokens
	u.TotalTokens += other.TotalTokens
	u.CachedTokens += other.CachedTokens
	u.ReasoningTokens += other.ReasoningTokens
}

// ReadUsage finds the member "usage" of an answer and reads it, under the names of chat and
// completions (prompt_tokens, completion_tokens) or of responses (input_tokens, output_tokens). It
// reports whether there is one. What follows the member is not looked at.
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

// eachMember calls fn with the members of the object at b[i], the keys without quotes, and reports
// whether it is a whole object.
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
