package webhook

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

// FuzzAnswer answers a delivery with any bytes.
func FuzzAnswer(f *testing.F) {
	for _, answer := range []string{"", "HTTP/1.1 200 OK\r\n\r\n",
		"HTTP/1.1 503 x\r\nRetry-After: 99999999999999\r\nContent-Length: 3\r\n\r\nabc",
		"HTTP/1.1 301 x\r\nLocation: http://127.0.0.1:1\r\n\r\n", "HTTP/1.1 410 Gone\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz",
	} {
		f.Add(answer)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { listener.Close() })
	answers := make(chan string, 1)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			select {
			case answer := <-answers:
				conn.Read(make([]byte, 4<<10))
				io.WriteString(conn, answer)
			default: // a second attempt of the transport
			}
			conn.Close()
		}
	}()
	signer, err := newSigner(testSecret)
	if err != nil {
		f.Fatal(err)
	}
	e := endpoint{Endpoint: Endpoint{Name: "e", URL: "http://" + listener.Addr().String(),
		Timeout: 5 * time.Second}, signer: signer, client: newClient(), pace: DefaultPace}
	f.Fuzz(func(t *testing.T, answer string) {
		answers <- answer
		begin := time.Now()
		wait, _ := e.send(t.Context(), store.Notice{ID: "evt_1", Batch: "b", Event: "batch.failed"})
		if took := time.Since(begin); wait > time.Hour || took > 6*time.Second {
			t.Errorf("took %v and waits %v", took, wait)
		}
		select {
		case <-answers: // an answer that the transport did not ask for
		default:
		}
		e.client.CloseIdleConnections()
	})
}
