package httpserver

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
)

// refuse answers a request that does not reach its handler, in the shape of the OpenAI API's
// errors.
func refuse(w http.ResponseWriter, status int, kind, code, message string) {
	body, err := json.Marshal(map[string]any{
		"error": map[string]any{"message": message, "type": kind, "param": nil, "code": code},
	})
	if err != nil {
		panic(err) // strings only
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Request-Id", "req_"+strings.ToLower(rand.Text()))
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}
