package openai

import (
	"bufio"
	"net"
	"strings"
	"testing"
)

func BenchmarkIdleCheck(b *testing.B) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(rawServerFor(b), "http://"))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	p := newIdleCheck(conn)
	b.ReportAllocs()
	for b.Loop() {
		if !p.isIdle() {
			b.Fatal("the connection is not idle")
		}
	}
}

func rawServerFor(b *testing.B) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { listener.Close() })
	go func() {
		if conn, err := listener.Accept(); err == nil {
			bufio.NewReader(conn).ReadByte()
		}
	}()
	return "http://" + listener.Addr().String()
}
