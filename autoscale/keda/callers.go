package keda

import (
	"context"
	"io"
	"net"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// callers decides who gets an answer. A connection without TLS, or without a certificate, is
// refused with its first call and not before: only a call names the ScaledObject, and only its
// error reaches the user. The health service is open, since the kubelet asks without TLS.
type callers struct {
	tls         bool
	certificate bool
}

// admit returns an error for a caller that must not get an answer.
func (c callers) admit(ctx context.Context, ref *externalscaler.ScaledObjectRef) error {
	if !c.tls {
		return nil
	}
	var info credentials.TLSInfo
	p, encrypted := peer.FromContext(ctx)
	if encrypted {
		info, encrypted = p.AuthInfo.(credentials.TLSInfo)
	}
	if !encrypted {
		return status.Errorf(codes.Unauthenticated, "ScaledObject %s: the scaler requires TLS; "+
			"add enableTLS: \"true\" to the trigger's metadata, and caCert to its "+
			"TriggerAuthentication", objectOf(ref))
	}
	if c.certificate && len(info.State.VerifiedChains) == 0 {
		return status.Errorf(codes.Unauthenticated, "ScaledObject %s: the scaler requires a "+
			"client certificate; add tlsClientCert and tlsClientKey to the TriggerAuthentication "+
			"that the trigger's authenticationRef names", objectOf(ref))
	}
	return nil
}

// handshake accepts connections with TLS, and without, so that callers can refuse the latter.
type handshake struct {
	credentials.TransportCredentials
	observer *observer
}

// tlsHandshake is the first byte of a TLS connection, the type of its first record.
const tlsHandshake = 0x16

// ServerHandshake implements credentials.TransportCredentials.
func (h handshake) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	begun := &begunConn{Conn: conn, first: make([]byte, 1)}
	if _, err := io.ReadFull(conn, begun.first); err != nil {
		return nil, nil, err // a port scan, or a load balancer's probe
	}
	if begun.first[0] != tlsHandshake {
		return begun, plaintext{credentials.CommonAuthInfo{
			SecurityLevel: credentials.NoSecurity}}, nil
	}
	secured, info, err := h.TransportCredentials.ServerHandshake(begun)
	if err != nil && h.observer.isNew(err.Error()) {
		h.observer.log.Warn("a TLS connection to the scaler failed", "error", err,
			"remote", conn.RemoteAddr().String())
	}
	return secured, info, err
}

// Clone implements credentials.TransportCredentials.
func (h handshake) Clone() credentials.TransportCredentials {
	return handshake{h.TransportCredentials.Clone(), h.observer}
}

// plaintext marks a connection without TLS.
type plaintext struct{ credentials.CommonAuthInfo }

// AuthType implements credentials.AuthInfo.
func (plaintext) AuthType() string { return "plaintext" }

// begunConn is a connection of which the first bytes are read already.
type begunConn struct {
	net.Conn
	first []byte
}

// Read implements net.Conn.
func (c *begunConn) Read(p []byte) (int, error) {
	if len(c.first) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.first)
	c.first = c.first[n:]
	return n, nil
}
