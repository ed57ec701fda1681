package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// endlessly writes a piece repeatedly, until the other side has closed the connection or received
// much.
func endlessly(conn net.Conn, head, piece string) {
	const most = 2 << 30
	io.WriteString(conn, head)
	for sent := 0; sent < most; sent += len(piece) {
		if _, err := io.WriteString(conn, piece); err != nil {
			return
		}
	}
}

const (
	okHead      = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	chunkedHead = okHead + "Transfer-Encoding: chunked\r\n\r\n"
)

// text is a piece of a JSON string.
var text = "10000\r\n" + strings.Repeat("x", 64<<10) + "\r\n"

func endlessBody(conn net.Conn, _ *http.Request, _ []byte) bool {
	endlessly(conn, chunkedHead+"6\r\n{\"a\":\"\r\n", text)
	return false
}

func endlessHeader(conn net.Conn, _ *http.Request, _ []byte) bool {
	endlessly(conn, okHead+"X-Long: ", strings.Repeat("x", 64<<10))
	return false
}

func endlessHeaders(conn net.Conn, _ *http.Request, _ []byte) bool {
	endlessly(conn, okHead, "X-"+strings.Repeat("y", 100)+": z\r\n")
	return false
}

func endlessHints(conn net.Conn, _ *http.Request, _ []byte) bool {
	endlessly(conn, "", "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n")
	return false
}

func endlessContinue(conn net.Conn, _ *http.Request, _ []byte) bool {
	endlessly(conn, "", "HTTP/1.1 100 Continue\r\n\r\n")
	return false
}

func endlessChunkExtension(conn net.Conn, _ *http.Request, _ []byte) bool {
	endlessly(conn, chunkedHead+"6;a=", strings.Repeat("x", 64<<10))
	return false
}

func endlessTrailer(conn net.Conn, _ *http.Request, _ []byte) bool {
	endlessly(conn, chunkedHead+"2\r\n{}\r\n0\r\nX-Trailer: ", strings.Repeat("x", 64<<10))
	return false
}

// large returns a correct answer of many bytes.
func large(size int) RawHandler {
	return func(conn net.Conn, _ *http.Request, _ []byte) bool {
		const before, after = `{"choices":[],"a":"`, `"}`
		fmt.Fprintf(conn, "%sContent-Length: %d\r\n\r\n%s", okHead, size, before)
		piece := []byte(strings.Repeat("x", 64<<10))
		for left := size - len(before) - len(after); left > 0; {
			n, err := conn.Write(piece[:min(left, len(piece))])
			if err != nil {
				return false
			}
			left -= n
		}
		_, err := io.WriteString(conn, after)
		return err == nil
	}
}

// drip sends single bytes at intervals.
func drip(conn net.Conn, _ *http.Request, _ []byte) bool {
	io.WriteString(conn, okHead+"Content-Length: 100000\r\n\r\n{\"a\":\"")
	for {
		if _, err := io.WriteString(conn, "x"); err != nil {
			return false
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func garbage(conn net.Conn, _ *http.Request, body []byte) bool {
	random := rand.New(rand.NewPCG(uint64(len(body)), uint64(body[len(body)/2])))
	noise := make([]byte, 1+random.IntN(4000))
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	conn.Write(noise)
	return false
}

// nothing closes the connection after the request.
func nothing(net.Conn, *http.Request, []byte) bool { return false }

// announced returns an answer whose Content-Length is wrong by the given number.
func announced(off int) RawHandler {
	return func(conn net.Conn, request *http.Request, body []byte) bool {
		answer := completion("m", Digest(body))
		fmt.Fprintf(conn, "%sX-Request-Id: %s\r\nContent-Length: %d\r\n\r\n%s", okHead,
			request.Header.Get("X-Request-Id"), len(answer)+off, answer)
		return off < 0 // the rest precedes the next answer
	}
}

// stray answers correctly and then sends a second, unsolicited answer.
func stray(conn net.Conn, request *http.Request, body []byte) bool {
	if !AnswerCorrectly(conn, request, body) {
		return false
	}
	time.Sleep(rand.N(3 * time.Millisecond))
	_, err := io.WriteString(conn, rawAnswer(request,
		completion("m", Digest([]byte("unsolicited")))))
	return err == nil
}

// bomb returns a small compressed answer that is large when decompressed.
var bomb = sync.OnceValue(func() []byte {
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	io.WriteString(w, `{"choices":[],"a":"`)
	piece := bytes.Repeat([]byte("x"), 1<<20)
	for range 256 {
		w.Write(piece) // a buffer takes everything
	}
	io.WriteString(w, `"}`)
	w.Close()
	return packed.Bytes()
})

func gzipBomb(conn net.Conn, _ *http.Request, _ []byte) bool {
	fmt.Fprintf(conn, "%sContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n", okHead, len(bomb()))
	_, err := conn.Write(bomb())
	return err == nil
}

// inventedModel returns another model name in each answer.
func inventedModel(conn net.Conn, request *http.Request, body []byte) bool {
	digest := Digest(body)
	_, err := io.WriteString(conn, rawAnswer(request, completion("invented-"+digest, digest)))
	return err == nil
}

// some applies a handler to lines with a word in their bodies, and answers the others correctly.
func some(word string, handler RawHandler) RawHandler {
	return func(conn net.Conn, request *http.Request, body []byte) bool {
		if bytes.Contains(body, []byte(word)) {
			return handler(conn, request, body)
		}
		return AnswerCorrectly(conn, request, body)
	}
}
