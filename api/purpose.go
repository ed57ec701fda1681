package api

import (
	"slices"
	"strings"
	"time"
)

const purposeBatch = "batch"

// uploadPurposes are those a user may give; batch_output and its like are the server's own.
var uploadPurposes = []string{"assistants", purposeBatch, "fine-tune", "vision", "user_data",
	"evals"}

// checkPurpose judges what a file is to be for; an empty one is missing.
func checkPurpose(purpose string) error {
	if purpose == "" {
		return missing("purpose")
	}
	if !slices.Contains(uploadPurposes, purpose) {
		return invalid("purpose", "invalid_value",
			"Invalid 'purpose': %s is none of the supported values, which are '%s'.",
			quoted(purpose), strings.Join(uploadPurposes, "', '"))
	}
	return nil
}

// checkName refuses batch input files that aren't JSONL by their name.
func checkName(purpose, filename string) error {
	if purpose == purposeBatch && !isJSONL(filename) {
		return invalid("file", "invalid_value", "Invalid file format for Batch API. Must be .jsonl")
	}
	return nil
}

func isJSONL(filename string) bool {
	return strings.HasSuffix(strings.ToLower(filename), ".jsonl")
}

// fileLimit bounds the bytes of a file of a purpose; an empty one, not known yet, gives the widest
// bound.
func (s *Server) fileLimit(purpose string) int64 {
	switch purpose {
	case purposeBatch:
		return s.config.MaxBatchFileBytes
	case "":
		return max(s.config.MaxBatchFileBytes, s.config.MaxFileBytes)
	}
	return s.config.MaxFileBytes
}

func fileTooLarge(purpose string, limit int64) *Error {
	if purpose == purposeBatch {
		return tooLarge(
			"The file is over the limit of %d bytes for batch input; split it into several batches.", limit)
	}
	return tooLarge("The file is over the limit of %d bytes.", limit)
}

// expiry is when a file made at a time expires; life 0 means the purpose's default, a zero answer
// never.
func (s *Server) expiry(purpose string, made time.Time, life time.Duration) time.Time {
	if life == 0 && purpose == purposeBatch {
		life = s.config.BatchFileRetention
	}
	if life == 0 {
		return time.Time{}
	}
	return made.Add(life)
}
