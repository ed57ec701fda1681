package keda_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/tidefill/tidefill/autoscale/keda"
	"github.com/tidefill/tidefill/internal/httpserver/tlstest"
)

// mutual is a server that requires client certificates.
type mutual struct {
	*world
	keda.TLSConfig
	authority *tlstest.Authority
	roots     *x509.CertPool
	own       tls.Certificate
}

func startMutual(t *testing.T) *mutual {
	t.Helper()
	dir := t.TempDir()
	m := &mutual{authority: tlstest.NewAuthority(t), roots: x509.NewCertPool(),
		TLSConfig: keda.TLSConfig{CertFile: filepath.Join(dir, "cert.pem"),
			KeyFile: filepath.Join(dir, "key.pem"), ClientCAFile: filepath.Join(dir, "ca.pem")}}
	m.authority.WritePair(m.CertFile, m.KeyFile)
	m.authority.WriteCA(m.ClientCAFile)
	ca, err := os.ReadFile(m.ClientCAFile)
	if err != nil {
		t.Fatal(err)
	}
	m.roots.AppendCertsFromPEM(ca)
	own, key := filepath.Join(dir, "own.pem"), filepath.Join(dir, "own.key")
	m.authority.WritePair(own, key)
	if m.own, err = tls.LoadX509KeyPair(own, key); err != nil {
		t.Fatal(err)
	}
	m.world = start(t, func(c *keda.Config) { c.TLS = m.TLSConfig })
	m.d.set(wanted("night", 2, 0, 0))
	return m
}

// isActive asks over a new connection, and returns the serial number of the server's certificate.
func (m *mutual) isActive(certificates ...tls.Certificate) (serial string, err error) {
	m.t.Helper()
	conn, err := grpc.NewClient(m.conn.Target(), grpc.WithTransportCredentials(
		credentials.NewTLS(&tls.Config{RootCAs: m.roots, Certificates: certificates})))
	if err != nil {
		m.t.Fatal(err)
	}
	defer conn.Close()
	var server peer.Peer
	_, err = externalscaler.NewExternalScalerClient(conn).IsActive(m.t.Context(),
		object("night-gpus", "night"), grpc.Peer(&server))
	if info, ok := server.AuthInfo.(credentials.TLSInfo); ok {
		serial = info.State.PeerCertificates[0].SerialNumber.String()
	}
	return serial, err
}

// The error says which object and what to change: KEDA shows it to its user.
func TestCallersWithoutCertificateAreRefused(t *testing.T) {
	m := startMutual(t)
	ref := object("night-gpus", "night")
	if _, err := m.isActive(m.own); err != nil {
		t.Errorf("with a certificate: %v", err)
	}
	_, err := m.isActive()
	if status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(),
		"ScaledObject llm/night-gpus: the scaler requires a client certificate; add tlsClient") {
		t.Errorf("without a certificate: got %v", err)
	}
	if _, err = m.client.GetMetricSpec(t.Context(), ref); err != nil {
		t.Errorf("the specification without TLS: %v", err)
	}
	const wantTLS = "ScaledObject llm/night-gpus: the scaler requires TLS; add enableTLS"
	_, err = m.client.IsActive(t.Context(), ref)
	if status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), wantTLS) {
		t.Errorf("IsActive without TLS: got %v", err)
	}
	_, err = m.client.GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{
		ScaledObjectRef: ref, MetricName: "tidefill-replicas-night"})
	if status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), wantTLS) {
		t.Errorf("GetMetrics without TLS: got %v", err)
	}
	_, ended := m.activity(ref)
	if err := <-ended; status.Code(err) != codes.Unauthenticated {
		t.Errorf("a stream without TLS: got %v", err)
	}
	m.awaitHealth(grpc_health_v1.HealthCheckResponse_SERVING)
}

func TestACertificateOfAnotherAuthorityIsRefused(t *testing.T) {
	m, other := startMutual(t), startMutual(t)
	if _, err := m.isActive(other.own); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v", err)
	}
	m.await("the refusal is logged", func() error {
		if !strings.Contains(m.log.String(), "a TLS connection to the scaler failed") {
			return fmt.Errorf("the log is %q", m.log.String())
		}
		return nil
	})
}

// Certificates are renewed while the server runs. Files that can't be read change nothing.
func TestCertificatesAreReadAgain(t *testing.T) {
	m := startMutual(t)
	before, err := m.isActive(m.own)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(m.CertFile, []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	m.await("the fault is logged", func() error {
		if !strings.Contains(m.log.String(), "the last version stays in use") {
			return fmt.Errorf("the log is %q", m.log.String())
		}
		return nil
	})
	if serial, err := m.isActive(m.own); err != nil || serial != before {
		t.Errorf("with a broken file: got %v, %v", serial, err)
	}
	renewed := m.authority.WritePair(m.CertFile, m.KeyFile)
	m.await("the new certificate is used", func() error {
		serial, err := m.isActive(m.own)
		if err == nil && serial == before {
			err = fmt.Errorf("serial number %s instead of %s", serial, renewed)
		}
		return err
	})
	// The authority of clients changes too.
	another := tlstest.NewAuthority(t)
	another.WriteCA(m.ClientCAFile)
	m.await("clients of the old authority are refused", func() error {
		if _, err := m.isActive(m.own); err == nil {
			return fmt.Errorf("still answered")
		}
		return nil
	})
}
