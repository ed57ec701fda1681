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

	fieldTools
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

// lineFields holds the fields of the line's own object, bodyFields those of the body, by key.
var lineFields, bodyFields = func() (line, body map[string]field) {
	line, body = map[string]field{}, map[string]field{}
	for f := fieldCustomID; f <= fieldBody; f++ {
		line[f.key()] = f
	}
	for f := fieldModel; f < fieldCount; f++ {
		body[f.key()] = f
	}
	return line, body
}()

// fieldOf returns the field of a key literal.
func fieldOf(fields map[string]field, key []byte) field {
	f, known := fields[string(inside(key))]
	if !known && escaped(key) {
		f = fields[string(textOf(key, new([32]byte)[:0]))]
	}
	return f
}
