package s3

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/encrypt"
)

// newCredentials returns the credentials of the files, or of the usual places.
func newCredentials(cfg Config) (*credentials.Credentials, error) {
	if cfg.AccessKeyFile != "" {
		access, err := readSecret("access_key_file", cfg.AccessKeyFile)
		if err != nil {
			return nil, err
		}
		secret, err := readSecret("secret_key_file", cfg.SecretKeyFile)
		if err != nil {
			return nil, err
		}
		return credentials.NewStaticV4(access, secret, ""), nil
	}
	return credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{},
		&credentials.FileAWSCredentials{},
		&credentials.IAM{Client: &http.Client{Timeout: 10 * time.Second}, Region: cfg.Region},
	}), nil
}

// blameCredentials says that there are no credentials, if the storage refuses a request because it
// has none.
func (b *Bucket) blameCredentials(err error) error {
	var f *failure
	if !errors.As(err, &f) || f.status != http.StatusForbidden {
		return err
	}
	found, failed := b.creds.GetWithContext(nil)
	if failed != nil || !found.SignerType.IsAnonymous() {
		return err
	}
	return fmt.Errorf("no credentials were found: set access_key_file and secret_key_file, or "+
		"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine a role: %w", err)
}

func readSecret(key, path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", key, err)
	}
	value := strings.TrimSpace(string(content))
	if value == "" {
		return "", fmt.Errorf("%s: file %s is empty", key, path)
	}
	return value, nil
}

// newTransport returns a transport with many connections to one host.
func newTransport(cfg Config) (*http.Transport, error) {
	t := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: cfg.StallAfter}).DialContext,
		TLSHandshakeTimeout:   cfg.StallAfter,
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       time.Minute,
		ExpectContinueTimeout: time.Second,
		DisableCompression:    true,
	}
	if cfg.CAFile == "" {
		return t, nil
	}
	pem, err := os.ReadFile(cfg.CAFile)
	if err != nil {
		return nil, fmt.Errorf("ca_file: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bytes.TrimSpace(pem)) {
		return nil, fmt.Errorf("ca_file: %s has no certificate", cfg.CAFile)
	}
	t.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return t, nil
}

// newEncryption returns the configured encryption; nil: the bucket decides.
func newEncryption(cfg Config) (encrypt.ServerSide, error) {
	switch cfg.Encryption {
	case sseS3:
		return encrypt.NewSSE(), nil
	case sseKMS:
		return encrypt.NewSSEKMS(cfg.KMSKey, nil)
	case "":
		return nil, nil
	}
	return nil, errors.New("unknown encryption " + cfg.Encryption)
}
