package redis_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	servers "github.com/tidefill/tidefill/internal/testservers/redis"
	"github.com/tidefill/tidefill/store/redis"
)

func TestValidate(t *testing.T) {
	for url, fault := range map[string]string{
		"":                                     "",
		"redis://host":                         "",
		"redis://host:6379/3":                  "",
		"rediss://user@host:6380":              "",
		"redis+sentinel://a,b:1,[::1]:2/main":  "",
		"rediss+cluster://a:1,b:2":             "",
		"host:6379":                            "no scheme",
		"http://host":                          "scheme is unknown",
		"redis+other://host":                   "scheme is unknown",
		"redis://user:secret@host":             "password_file",
		"redis://host?password=secret":         "parameters",
		"redis://a,b":                          "several hosts",
		"redis://host/main":                    "not the number",
		"redis+sentinel://a,b":                 "/NAME",
		"redis+cluster://a/0":                  "no databases",
		"redis://:6379":                        "is empty",
		"redis+sentinel://user:secret@a:1/mai": "password_file",
	} {
		cfg := redis.DefaultConfig()
		cfg.URL = url
		err := cfg.Validate()
		switch {
		case fault == "" && err != nil:
			t.Errorf("%s: %v", url, err)
		case fault != "" && (err == nil || !strings.Contains(err.Error(), fault)):
			t.Errorf("%s: %v, want %q", url, err, fault)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("the error repeats a password: %v", err)
		}
	}
	cfg := redis.Config{PasswordEnv: "A", PasswordFile: "b", Prefix: "a b"}
	err := cfg.Validate()
	for _, key := range []string{"password_file:", "prefix:"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%v lacks a fault of %s", err, key)
		}
	}
}

func TestPassword(t *testing.T) {
	server := servers.Start(t, "--requirepass", "correct horse")
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("correct horse\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TEST_REDIS_PASSWORD", "correct horse")
	t.Setenv("TEST_REDIS_WRONG", "wrong horse")
	for name, change := range map[string]func(*redis.Config){
		"file": func(c *redis.Config) { c.PasswordFile = file },
		"env":  func(c *redis.Config) { c.PasswordEnv = "TEST_REDIS_PASSWORD" },
	} {
		cfg := config("redis://" + server.Addr)
		change(&cfg)
		if db := open(t, cfg, redis.Options{}); db.Away() != nil {
			t.Errorf("password from %s: %v", name, db.Away())
		}
	}
	for name, c := range map[string]struct {
		env, fault string
	}{
		"none":  {"", "NOAUTH"},
		"wrong": {"TEST_REDIS_WRONG", "WRONGPASS"},
		"unset": {"TEST_REDIS_UNSET", "TEST_REDIS_UNSET"},
	} {
		cfg := config("redis://" + server.Addr)
		cfg.PasswordEnv = c.env
		_, err := redis.Open(t.Context(), cfg, redis.Options{})
		if err == nil || !strings.Contains(err.Error(), c.fault) ||
			!strings.Contains(err.Error(), "password_env") ||
			strings.Contains(err.Error(), "horse") {
			t.Errorf("%s: %v, want one that names %s and the remedy", name, err, c.fault)
		}
	}
}

// TestOpenWithoutServer checks that a process starts while Redis is away.
func TestOpenWithoutServer(t *testing.T) {
	server := servers.Start(t)
	server.Kill()
	db := open(t, config("redis://"+server.Addr), redis.Options{})
	if db.Away() == nil {
		t.Error("a server that does not run is not away")
	}
	server.Restart()
	publishUntil(t, db, 5*time.Second)
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	certificate, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	makeCertificate(t, certificate, key)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	server := servers.StartAt(t, port, "--tls-port", port, "--port", "0", "--tls-cert-file",
		certificate, "--tls-key-file", key, "--tls-auth-clients", "no")
	cfg := config("rediss://" + server.Addr)
	cfg.CAFile = certificate
	if db := open(t, cfg, redis.Options{}); db.Away() != nil {
		t.Errorf("with TLS: %v", db.Away())
	}
	cfg.CAFile = ""
	if db := open(t, cfg, redis.Options{}); db.Away() == nil {
		t.Error("a certificate of an unknown authority was accepted")
	}
}

func makeCertificate(t *testing.T, certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, of, of, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{
		certificate: {Type: "CERTIFICATE", Bytes: der},
		key:         {Type: "EC PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
