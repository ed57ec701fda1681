package api

import (
	"slices"
	"strings"
	"time"
)

const purposeBatch = "batch"

// uploadPurposes are the purposes that a user may set. Others, such as batch_output, are for files
// that the server creates.
var uploadPurposes = []string{"assistants", purposeBatch, "fine-tune", "vision", "user_data",
	"evals"}

// checkPurpose returns an error unless purpose is one that a user may set.
func checkPurpose(purpose string) error {
	if purpose == "" {
		return missing("purpose")
	}
	if !slices.Contains(uploadPurposes, purpose) {
		return invalid("purpose", "invalid_value",
			"Invalid 'purpose': %s is not one of the supported values '%s'.",
			quoted(purpose), strings.Join(uploadPurposes, "', '"))
	}
	return nil
}

// checkName returns an error for a batch input file whose name does not end in .jsonl.
func checkName(purpose, filename string) error {
	if purpose == purposeBatch && !isJSONL(filename) {
		return invalid("file", "invalid_value", "Invalid file format for Batch API. Must be .jsonl")
	}
	return nil
}

func isJSONL(filename string) bool {
	return strings.HasSuffix(strings.ToLower(filename), ".jsonl")
}

// fileLimit returns the largest size of a file of a purpose. An empty purpose, which is not known
// yet, gives the largest of all.
func (s *Server) fileLimit(purpose string) int64 {
	switch purpose {
	case purposeBatch:
		return s.config().MaxBatchFileBytes
	case "":
		return max(s.config().MaxBatchFileBytes, s.config().MaxFileBytes)
	}
	return s.config().MaxFileBytes
}

func fileTooLarge(purpose string, limit int64) *httpError {
	if purpose == purposeBatch {
		return tooLarge(
			"The file is over the limit of %d bytes for batch input; split it into several files.",
			limit)
	}
	return tooLarge("The file is over the limit of %d bytes.", limit)
}

// expiry returns the time at which a file created at made expires; the zero time: never. life 0
// means the default of the purpose.
func (s *Server) expiry(purpose string, made time.Time, life time.Duration) time.Time {
	if life == 0 && purpose == purposeBatch {
		life = s.config().BatchFileRetention
	}
	if life == 0 {
		return time.Time{}
	}
	return made.Add(life)
}
