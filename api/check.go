package api

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tidefill/tidefill/internal/answercheck"
	"github.com/tidefill/tidefill/store"
)

// checkKey is the member of a `tidefill` object with the rules for answers.
const checkKey = "check"

const (
	// defaultCheckAttempts asks once more.
	defaultCheckAttempts = 2
	maxCheckAttempts     = 10
	maxFinishReasons     = 16
)

// readCheck reads the rules for the answers of a batch, and the number of answers to a line that
// are asked for. Nil: there are none.
func readCheck(o *jsonObject) (*store.AnswerRules, int) {
	given, ok := o.object(checkKey)
	if !ok {
		return nil, 0
	}
	rules := &store.AnswerRules{}
	rules.FinishReason = given.texts(answercheck.FinishReason, maxFinishReasons)
	rules.Pattern, _ = given.text(answercheck.Pattern)
	rules.Schema, _ = given.value(answercheck.Schema)
	attempts := int(given.integer("attempts", 1, maxCheckAttempts, defaultCheckAttempts))
	if given.finish() != nil {
		return nil, 0
	}
	if rules.FinishReason == nil && rules.Pattern == "" && rules.Schema == nil {
		o.wrongValue(checkKey, "it has no rule; give '%s', '%s' or '%s'.",
			answercheck.FinishReason, answercheck.Pattern, answercheck.Schema)
		return nil, 0
	}
	_, err := answercheck.Compile(answercheck.Rules(*rules))
	if wrong, is := errors.AsType[*answercheck.RuleError](err); is {
		given.wrongValue(wrong.Rule, "%v.", wrong.Err)
	}
	return rules, attempts
}

// texts returns the elements of an array of 1 to limit strings that are not empty.
func (o *jsonObject) texts(key string, limit int) (texts []string) {
	elements, _ := o.list(key, limit)
	for i, raw := range elements {
		at := fmt.Sprintf("%s[%d]", key, i)
		text := ""
		if json.Unmarshal(raw, &text) != nil {
			o.wrongType(at, "a string", raw)
		} else if text == "" {
			o.wrongValue(at, "it is empty.")
		}
		texts = append(texts, text)
	}
	return texts
}

// checkEndpoint refuses a check where answers have no text.
func (d *draft) checkEndpoint(o *jsonObject) {
	if d.Parameters.Check != nil && d.Endpoint != "" && !answercheck.HasText(d.Endpoint) {
		o.fail(extensionsKey+"."+checkKey, "invalid_value",
			"Invalid '%s.%s': answers of '%s' have no text to check; leave it out.",
			extensionsKey, checkKey, d.Endpoint)
	}
}
