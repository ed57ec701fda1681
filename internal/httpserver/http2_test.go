package httpserver

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"testing"
)

// An HTTP/2 client can fill the memory of a server up to the limits that the server announces.
func TestHTTP2BuffersAreLimited(t *testing.T) {
	files := newTLSFiles(t, false)
	files.authority.WritePair(files.CertFile, files.KeyFile)
	certificates, err := LoadCertificates(files.TLSConfig)
	if err != nil {
		t.Fatal(err)
	}
	_, address := serve(t, DefaultConfig(), Options{TLS: certificates.Required()}, hello)
	c, err := tls.Dial("tcp", address, &tls.Config{RootCAs: files.roots,
		ServerName: "localhost", NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const settings, windowUpdate = 4, 8
	preface := append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 0, 0, 0, settings, 0, 0, 0, 0, 0)
	if _, err := c.Write(preface); err != nil {
		t.Fatal(err)
	}
	// the defaults of the protocol
	got := map[string]uint32{"frame": 16 << 10, "stream": 65535, "connection": 65535}
	names := map[uint16]string{4: "stream", 5: "frame"}
	for kind := byte(0); kind != windowUpdate; {
		var head [9]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			t.Fatal(err)
		}
		payload := make([]byte, binary.BigEndian.Uint32(head[:])>>8)
		if _, err := io.ReadFull(c, payload); err != nil {
			t.Fatal(err)
		}
		switch kind = head[3]; kind {
		case settings:
			for ; len(payload) > 0; payload = payload[6:] {
				got[names[binary.BigEndian.Uint16(payload)]] = binary.BigEndian.Uint32(payload[2:])
			}
		case windowUpdate:
			got["connection"] += binary.BigEndian.Uint32(payload)
		}
	}
	for name, limit := range map[string]uint32{"frame": 16 << 10, "stream": 64 << 10,
		"connection": 256 << 10} {
		if got[name] > limit {
			t.Errorf("a %s may take %d bytes, want %d at limit", name, got[name], limit)
		}
	}
}
