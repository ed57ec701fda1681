package batchfile

import (
	"fmt"
	"unicode/utf8"
)

// Fault describes one mistake in an input file, in the format of OpenAI's BatchError.
type Fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Param   string `json:"param,omitempty"`
	// Line is the row of the file, from 1, blank rows included. 0: the file.
	Line int `json:"line,omitempty"`
}

func (f Fault) String() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s: %s", f.Code, f.Message)
	}
	return fmt.Sprintf("line %d: %s: %s", f.Line, f.Code, f.Message)
}

// The codes of faults.
const (
	CodeInvalidJSON       = "invalid_json_line"
	CodeInvalidRequest    = "invalid_request"
	CodeMissing           = "missing_required_parameter"
	CodeInvalidType       = "invalid_type"
	CodeInvalidValue      = "invalid_value"
	CodeDuplicateKey      = "duplicate_key"
	CodeDuplicateCustomID = "duplicate_custom_id"
	CodeURLMismatch       = "url_mismatch"
	CodeStream            = "stream_not_supported"
	CodeTooManyModels     = "too_many_models"
	CodeModelNotFound     = "model_not_found"
	CodeLineTooLong       = "line_too_long"
	CodeTooManyTasks      = "too_many_tasks"
	CodeFileTooLarge      = "file_too_large"
	CodeEmptyFile         = "empty_file"
)

// shown quotes a user's value for a message and shortens it.
func shown(value []byte) string {
	const most = 64
	if len(value) <= most {
		return fmt.Sprintf("%q", value)
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(value[cut]) {
		cut--
	}
	return fmt.Sprintf("%q…", value[:cut])
}
