package openai

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// BenchmarkTransports sends lines to a server that answers each at once, from one process, by the
// transport for plain HTTP and by net/http's. Its figures are why the former exists:
//
//	go test -bench Transports -cpu 1,2 ./dispatch/openai
func BenchmarkTransports(b *testing.B) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go answerInstantly(conn)
		}
	}()
	cfg := Config{URL: "http://" + listener.Addr().String(), MaxAnswer: 1 << 20,
		DialTimeout: 5 * time.Second}
	request := Request{Path: path, Size: 600, ID: "batch_req_1", NewBody: func() io.ReadCloser {
		return io.NopCloser(strings.NewReader(strings.Repeat("x", 600)))
	}}
	for name, own := range map[string]bool{"wire": true, "nethttp": false} {
		b.Run(name, func(b *testing.B) {
			c, err := New(cfg)
			if err != nil {
				b.Fatal(err)
			}
			if !own {
				c.transport = newNetTransport(cfg, net.Dialer{Timeout: cfg.DialTimeout})
			}
			defer c.Close()
			b.ReportAllocs()
			b.SetParallelism(50)
			b.RunParallel(func(pb *testing.PB) {
				var scratch Scratch
				for pb.Next() {
					if a, err := c.Send(b.Context(), request, &scratch); err != nil || !a.Object {
						b.Errorf("got %+v, %v", a, err)
						return
					}
				}
			})
		})
	}
}

// answerInstantly answers each request on a connection with a completion of 365 bytes.
func answerInstantly(conn net.Conn) {
	defer conn.Close()
	body := `{"choices":[{"message":{"content":"` + strings.Repeat("a", 323) + `"}}]}`
	answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	in := bufio.NewReader(conn)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}
