package emulator

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What an instant answer costs on top of net/http.
func BenchmarkInstant(b *testing.B) {
	for name, prompt := range map[string]int{"short": 200, "4KB": 4000} {
		b.Run(name, func(b *testing.B) {
			c := DefaultConfig()
			c.Models, c.Profile = []string{"m"}, Instant
			s, err := New(c)
			if err != nil {
				b.Fatal(err)
			}
			h := s.Handler()
			body := []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat(
				"x", prompt) + `"}],"max_tokens":20}`)
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", bytes.NewReader(
					body))
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Fatal(w.Body)
				}
			}
		})
	}
}
