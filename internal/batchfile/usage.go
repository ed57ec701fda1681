package batchfile

import (
	"math"
	"slices"
)

// Usage is the number of tokens of an answer as the engine reports it, with the names of the
// Responses API.
type Usage struct {
	InputTokens     int64
	OutputTokens    int64
	TotalTokens     int64
	CachedTokens    int64 // part of the input, found in the prefix cache
	ReasoningTokens int64 // part of the output
}

// maxTokens is the largest number of tokens that an answer may report. No answer comes near it.
const maxTokens = 1e9

// Add adds another usage. Sums that int64 can't hold, of numbers that were stored unchecked, stay
// at the largest one.
func (u *Usage) Add(other Usage) {
	u.InputTokens = sum(u.InputTokens, other.InputTokens)
	u.OutputTokens = sum(u.OutputTokens, other.OutputTokens)
	u.TotalTokens = sum(u.TotalTokens, other.TotalTokens)
	u.CachedTokens = sum(u.CachedTokens, other.CachedTokens)
	u.ReasoningTokens = sum(u.ReasoningTokens, other.ReasoningTokens)
}

func sum(a, b int64) int64 {
	if b > 0 && a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// tokens reads a number of tokens. A number that is none, or above maxTokens, is 0, as if it were
// absent: it would spoil every sum that it is part of.
func tokens(number []byte) int64 {
	if n := count(number); n <= maxTokens {
		return n
	}
	return 0
}

// ReadAnswer reads the body of an engine's answer in one pass. object reports whether the body is
// exactly one JSON object, and listed whether one of the members that lists names is a list.
// hasUsage reports whether it has a member "usage" that is an object, up to the first fault.
func ReadAnswer(body []byte, lists ...string) (usage Usage, hasUsage, object, listed bool) {
	c := NewCursor(body)
	usage, hasUsage, listed = c.Answer(lists...)
	return usage, hasUsage, c.End(), listed
}

// Answer moves past the next value, an engine's answer, and reads its usage. listed is as for
// ReadAnswer.
func (c *Cursor) Answer(lists ...string) (usage Usage, hasUsage, listed bool) {
	seen := false
	for o := c.Object(); o.Next(); {
		key := inside(o.key)
		switch {
		case !seen && string(key) == "usage":
			seen = true
			usage, hasUsage = c.Usage()
		case !listed && slices.Contains(lists, string(key)):
			listed = c.Kind() == '['
		}
	}
	return usage, hasUsage, listed
}

// ParseUsage reads the value of an answer's member "usage", as ReadAnswer does.
func ParseUsage(value []byte) (Usage, bool) {
	c := NewCursor(value)
	return c.Usage()
}

// Usage moves past the next value and reads it as an answer's usage, under the names of chat and
// completions (prompt_tokens, completion_tokens) or of responses (input_tokens, output_tokens). It
// reports whether the value is an object.
func (c *Cursor) Usage() (u Usage, ok bool) {
	if c.Kind() != '{' {
		c.Skip()
		return u, false
	}
	for o := c.Object(); o.Next(); {
		switch string(inside(o.key)) {
		case "prompt_tokens", "input_tokens":
			u.InputTokens = tokens(c.Skip())
		case "completion_tokens", "output_tokens":
			u.OutputTokens = tokens(c.Skip())
		case "total_tokens":
			u.TotalTokens = tokens(c.Skip())
		case "prompt_tokens_details", "input_tokens_details":
			c.detail("cached_tokens", &u.CachedTokens)
		case "completion_tokens_details", "output_tokens_details":
			c.detail("reasoning_tokens", &u.ReasoningTokens)
		}
	}
	if c.err != nil {
		return Usage{}, false
	}
	if u.TotalTokens == 0 {
		u.TotalTokens = u.InputTokens + u.OutputTokens
	}
	return u, true
}

// detail moves past the next value and, if it is an object, reads the number that a member of it
// holds.
func (c *Cursor) detail(name string, to *int64) {
	if c.Kind() != '{' {
		return
	}
	for o := c.Object(); o.Next(); {
		if string(inside(o.key)) == name {
			*to = tokens(c.Skip())
		}
	}
}
