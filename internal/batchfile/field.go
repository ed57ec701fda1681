package batchfile

import "strings"

// field is a member of a request that the scanner reads: of the line itself, or of its body.
type field uint8

const (
	noField field = iota
	fieldCustomID
	fieldMethod
	fieldURL
	fieldBody

	fieldModel
	fieldStream
	fieldMaxTokens
	fieldMaxCompletionTokens
	fieldMaxOutputTokens

	fieldTools // from here on: fields that engines read as input
	fieldMessages
	fieldPrompt
	fieldInstructions
	fieldInput
	fieldQuery
	fieldQueries
	fieldDocuments
	fieldText1
	fieldText2
	fieldCount
)

var fieldNames = [fieldCount]string{
	fieldCustomID:            "custom_id",
	fieldMethod:              "method",
	fieldURL:                 "url",
	fieldBody:                "body",
	fieldModel:               "body.model",
	fieldStream:              "body.stream",
	fieldMaxTokens:           "body.max_tokens",
	fieldMaxCompletionTokens: "body.max_completion_tokens",
	fieldMaxOutputTokens:     "body.max_output_tokens",
	fieldTools:               "body.tools",
	fieldMessages:            "body.messages",
	fieldPrompt:              "body.prompt",
	fieldInstructions:        "body.instructions",
	fieldInput:               "body.input",
	fieldQuery:               "body.query",
	fieldQueries:             "body.queries",
	fieldDocuments:           "body.documents",
	fieldText1:               "body.text_1",
	fieldText2:               "body.text_2",
}

// String returns the field's path in the line, as a fault's param shows it.
func (f field) String() string { return fieldNames[f] }

// key returns the field's name inside its object.
func (f field) key() string { return strings.TrimPrefix(fieldNames[f], "body.") }

// lineField returns the field of a key literal of the line's own object.
func lineField(key []byte) field {
	switch string(textOf(key, new([32]byte)[:0])) {
	case "custom_id":
		return fieldCustomID
	case "method":
		return fieldMethod
	case "url":
		return fieldURL
	case "body":
		return fieldBody
	}
	return noField
}

// bodyField returns the field of a key literal of the body.
func bodyField(key []byte) field {
	switch string(textOf(key, new([32]byte)[:0])) {
	case "model":
		return fieldModel
	case "stream":
		return fieldStream
	case "max_tokens":
		return fieldMaxTokens
	case "max_completion_tokens":
		return fieldMaxCompletionTokens
	case "max_output_tokens":
		return fieldMaxOutputTokens
	case "tools":
		return fieldTools
	case "messages":
		return fieldMessages
	case "prompt":
		return fieldPrompt
	case "instructions":
		return fieldInstructions
	case "input":
		return fieldInput
	case "query":
		return fieldQuery
	case "queries":
		return fieldQueries
	case "documents":
		return fieldDocuments
	case "text_1":
		return fieldText1
	case "text_2":
		return fieldText2
	}
	return noField
}
