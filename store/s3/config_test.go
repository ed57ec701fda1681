package s3_test

import (
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	servers "github.com/tidefill/tidefill/internal/testservers/s3"
	"github.com/tidefill/tidefill/store/s3"
)

func TestConfigReportsEveryFault(t *testing.T) {
	good := s3.DefaultConfig()
	good.Bucket = "a-bucket"
	if err := good.Validate(); err != nil {
		t.Errorf("the defaults with a bucket: %v", err)
	}
	bad := s3.Config{Endpoint: "minio:9000", Prefix: "a//b", AccessKeyFile: "x",
		Encryption: "rot13", KMSKey: "k", Tuning: s3.Tuning{Checksum: "sum"}}
	err := bad.Validate()
	for _, key := range []string{"endpoint", "bucket", "prefix", "region", "access_key_file",
		"encryption", "kms_key", "tuning.checksum", "tuning.stall_after"} {
		if err == nil || !strings.Contains("\n"+err.Error(), "\n"+key) {
			t.Errorf("no fault of %s is reported: %v", key, err)
		}
	}
	for _, endpoint := range []string{"https://user:pass@host", "https://host/path", "ftp://host",
		"https://", "https://host?x=y"} {
		c := good
		c.Endpoint = endpoint
		if err := c.Validate(); err == nil || strings.Contains(err.Error(), "pass") {
			t.Errorf("endpoint %s: got %v", endpoint, err)
		}
	}
}

func TestCredentialsOfTheEnvironment(t *testing.T) {
	c := config(t, servers.Start(t).URL)
	c.AccessKeyFile, c.SecretKeyFile = "", ""
	t.Setenv("AWS_ACCESS_KEY_ID", servers.AccessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", servers.SecretKey)
	open(t, c)

	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	file := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(file, []byte("[default]\naws_access_key_id = "+servers.AccessKey+
		"\naws_secret_access_key = "+servers.SecretKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	open(t, c)
}

// TestCertificates has the storage behind TLS, with a certificate of its own.
func TestCertificates(t *testing.T) {
	to, err := url.Parse(servers.Start(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host
		r.Out.Header["Accept-Encoding"] = r.In.Header["Accept-Encoding"]
	}})
	front.Config.ErrorLog = log.New(io.Discard, "", 0) // a handshake fails by intention
	defer front.Close()
	c := config(t, front.URL)
	c.Tries = 1
	if _, err := s3.Open(t.Context(), c, s3.Options{}); err == nil ||
		!strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown certificate: got %v", err)
	}
	c.CAFile = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(c.CAFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE",
		Bytes: front.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	blobs := open(t, c).Blobs()
	w := must(blobs.Create(t.Context(), "k"))(t)
	if _, err := w.Write(content(6 << 20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	must(blobs.Open(t.Context(), "k"))(t)
}

// TestMD5 has a storage verify MD5 and not CRC-32C.
func TestMD5(t *testing.T) {
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			c := config(t, start(t).URL)
			c.Checksum, c.PartBytes = "md5", 5<<20
			blobs := open(t, c).Blobs()
			for _, size := range []int{10, 6 << 20} {
				w := must(blobs.Create(t.Context(), "k"))(t)
				if _, err := w.Write(content(size)); err != nil {
					t.Fatal(err)
				}
				if err := w.Commit(t.Context()); err != nil {
					t.Fatal(err)
				}
				if o := must(blobs.Open(t.Context(), "k"))(t); o.Size() != int64(size) {
					t.Errorf("has %d bytes, want %d", o.Size(), size)
				}
			}
		})
	}
}
