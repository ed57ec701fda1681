package batchfile

// IsObject reports whether an answer's body is one whole JSON object, as every endpoint's answer
// is.
func IsObject(body []byte) bool {
	i := skipSpace(body, 0)
	return i < len(body) && body[i] == '{' && valid(body, answerDepth)
}
