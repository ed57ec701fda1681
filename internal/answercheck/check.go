// Package answercheck decides whether the answer of an engine fits the rules of its batch.
//
// A [Check] is compiled once for a batch. Its cost is bounded whatever the rules and the answer
// are, since users choose both: sizes, the programs of patterns and the steps of a validation have
// limits. Schemas never load anything from outside.
package answercheck

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Rules are what a batch asks of the answers to its lines. A rule that is empty does not count.
type Rules struct {
	// FinishReason lists the values that every choice may have as its finish_reason.
	FinishReason []string
	// Pattern is a regular expression of RE2 that the text of every choice matches.
	Pattern string
	// Schema is a JSON schema to which the text of every choice conforms as a JSON value.
	Schema json.RawMessage
}

// The names of the rules, which are also the keys of a create request.
const (
	FinishReason = "finish_reason"
	Pattern      = "pattern"
	Schema       = "json_schema"
)

const (
	// MaxBody limits the bytes of an answer that can be checked.
	MaxBody = 1 << 20
	// MaxPattern limits the bytes of a pattern.
	MaxPattern = 1 << 10
	// MaxSchema limits the bytes of a schema.
	MaxSchema = 64 << 10
)

// RuleError reports a rule that can't be compiled.
type RuleError struct {
	Rule string
	Err  error
}

func (e *RuleError) Error() string { return fmt.Sprintf("%s: %v", e.Rule, e.Err) }

func (e *RuleError) Unwrap() error { return e.Err }

// Check is the compiled rules. Goroutines that share it take a place for each answer.
type Check struct {
	reasons []string
	pattern *pattern // nil: none
	schema  *schema  // nil: none

	budget budget
	placed sync.Mutex // held while it has a place
}

// Compile returns the check of some rules. Its errors are of type [*RuleError].
func Compile(r Rules) (c *Check, err error) {
	c = &Check{reasons: r.FinishReason}
	if r.Pattern != "" {
		if c.pattern, err = compilePattern(r.Pattern, &c.budget); err != nil {
			return nil, &RuleError{Pattern, err}
		}
	}
	if len(r.Schema) > 0 {
		if c.schema, err = compileSchema(r.Schema, &c.budget); err != nil {
			return nil, &RuleError{Schema, err}
		}
	}
	return c, nil
}

// Answer checks the body of a good answer of an endpoint. Nil: it passes.
func (c *Check) Answer(url string, body []byte) *Fault {
	if len(body) > MaxBody {
		return TooLarge(int64(len(body)))
	}
	choices := choicesOf(url, body)
	if len(choices) == 0 {
		return faulty("", "", "the answer has no choice to check")
	}
	c.budget = budget{}
	for _, choice := range choices {
		if fault := c.choice(choice); fault != nil {
			return fault
		}
	}
	return nil
}

func (c *Check) choice(of choice) *Fault {
	if c.reasons != nil && !slices.Contains(c.reasons, of.reason) {
		return faulty(FinishReason, of.text, "got %s, want %s", cut(of.reason, 64),
			strings.Join(c.reasons, " or "))
	}
	if c.pattern != nil {
		matches := false
		err := within(func() error {
			matches = c.pattern.MatchString(of.text)
			return nil
		})
		switch {
		case err != nil:
			return faulty(Pattern, of.text, "%v", err)
		case !matches:
			return faulty(Pattern, of.text, "the text does not match %s", c.pattern)
		}
	}
	if c.schema != nil {
		if err := c.schema.check(of.text); err != nil {
			return faulty(Schema, of.text, "%v", err)
		}
	}
	return nil
}
