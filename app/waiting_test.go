package app

import (
	"net"
	"net/http"
	"testing"
	"time"
)

// While the store is away nobody is answered in clear on an address for TLS.
func TestWaitingAnswersOnlyWithoutTLS(t *testing.T) {
	for _, tls := range []bool{false, true} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		w := &waiting{tls: tls}
		stop := w.serve(l, answerAway)
		client := http.Client{Timeout: 5 * time.Second}
		if tls {
			client.Timeout = 100 * time.Millisecond
		}
		r, err := client.Get("http://" + l.Addr().String() + "/v1/files")
		if err == nil {
			r.Body.Close()
		}
		if answered := err == nil; answered == tls {
			t.Errorf("with TLS %t: answered in clear %t", tls, answered)
		}
		stop()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}
