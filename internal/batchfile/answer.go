package batchfile

// IsObject reports whether body is exactly one JSON object, as the answer of every endpoint is.
func IsObject(body []byte) bool {
	i := skipSpace(body, 0)
	return i < len(body) && body[i] == '{' && valid(body, answerDepth)
}
