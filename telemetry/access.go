package telemetry

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
)

// access sends requests to Prometheus with the credentials, headers and certificates of its
// configuration. Files are read for every request, so a rotated one is used at once. Several
// goroutines may use it.
type access struct {
	cfg Prometheus

	mu        sync.Mutex
	authority []byte // content of tls.ca_file that client trusts
	client    *http.Client
}

// newAccess returns an error if an environment variable is empty or a file can't be used.
func newAccess(cfg Prometheus) (*access, error) {
	a := &access{cfg: cfg}
	if _, err := a.trusting(); err != nil {
		return nil, err
	}
	if err := cfg.TLS.check(); err != nil {
		return nil, err
	}
	_, err := a.authorization()
	return a, err
}

// do sends a request. The returned function removes the credentials from an error, because a server
// may repeat them in its answer.
func (a *access) do(request *http.Request) (*http.Response, func(error) error, error) {
	credentials, err := a.authorization()
	if err != nil {
		return nil, nil, err
	}
	for name, value := range a.cfg.Headers {
		request.Header.Set(name, value)
	}
	if credentials != "" {
		request.Header.Set("Authorization", credentials)
	}
	client, err := a.trusting()
	if err != nil {
		return nil, nil, err
	}
	clean := func(err error) error { return withoutSecrets(err, request.Header) }
	response, err := client.Do(request)
	if err != nil {
		return nil, nil, clean(err)
	}
	return response, clean, nil
}

// authorization returns the value of the header; empty: none is sent.
func (a *access) authorization() (string, error) {
	basic := a.cfg.BasicAuth
	switch {
	case a.cfg.TokenEnv != "" || a.cfg.TokenFile != "":
		token, err := secret("token", a.cfg.TokenEnv, a.cfg.TokenFile)
		if err != nil {
			return "", err
		}
		return "Bearer " + token, nil
	case basic.Username != "":
		password, err := secret("basic_auth.password", basic.PasswordEnv, basic.PasswordFile)
		if err != nil {
			return "", err
		}
		return "Basic " + base64.StdEncoding.EncodeToString(
			[]byte(basic.Username+":"+password)), nil
	}
	return "", nil
}

// largestSecret limits the size of a secret, in bytes.
const largestSecret = 64 << 10

// secret reads a secret from an environment variable, or else from a file. key names the setting in
// errors, which never contain the secret.
func secret(key, env, file string) (string, error) {
	if env != "" {
		value := os.Getenv(env)
		if value == "" {
			return "", fmt.Errorf("%s_env: the environment variable %s is empty; set it", key, env)
		}
		return value, checkSecret(key+"_env: the environment variable "+env, value)
	}
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("%s_file: %w", key, err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, largestSecret+1))
	value := strings.TrimSpace(string(content))
	switch {
	case err != nil:
		return "", fmt.Errorf("%s_file: %w", key, err)
	case value == "":
		return "", fmt.Errorf("%s_file: %s is empty; write the secret into it", key, file)
	}
	return value, checkSecret(key+"_file: "+file, value)
}

// checkSecret refuses what can't be sent in a header.
func checkSecret(where, value string) error {
	if len(value) > largestSecret {
		return fmt.Errorf("%s has more than %d bytes, which no secret has", where, largestSecret)
	}
	if hasControl(value) {
		return fmt.Errorf("%s has a control character, such as a newline, within the secret; "+
			"write one line", where)
	}
	return nil
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7F })
}

// trusting returns a client that trusts the current content of tls.ca_file.
func (a *access) trusting() (*http.Client, error) {
	var authority []byte
	if file := a.cfg.TLS.CAFile; file != "" {
		var err error
		if authority, err = os.ReadFile(file); err != nil {
			return nil, fmt.Errorf("tls.ca_file: %w", err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.client != nil && bytes.Equal(authority, a.authority) {
		return a.client, nil
	}
	secured, err := a.cfg.TLS.client(authority)
	if err != nil {
		return nil, err
	}
	if a.client != nil {
		a.client.CloseIdleConnections()
	}
	transport := newTransport()
	transport.TLSClientConfig = secured
	a.authority, a.client = authority, &http.Client{Transport: transport, CheckRedirect: stay}
	return a.client, nil
}

func (a *access) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.client.CloseIdleConnections()
}

// stay refuses redirects to another host and from https to http, which would get the credentials.
func stay(request *http.Request, via []*http.Request) error {
	from, to := via[0].URL, request.URL
	if from.Hostname() != to.Hostname() || from.Scheme == "https" && to.Scheme != "https" {
		return fmt.Errorf("redirected from %s://%s to %s://%s, which gets no credentials; "+
			"configure that URL if it is right", from.Scheme, from.Host, to.Scheme, to.Host)
	}
	if len(via) >= 5 {
		return errors.New("redirected five times")
	}
	return nil
}

// cleanError is an error without the secrets that its text had.
type cleanError struct {
	text string
	err  error
}

func (e *cleanError) Error() string { return e.text }
func (e *cleanError) Unwrap() error { return e.err }

// shortestSecret is the number of bytes below which a header is not taken for a secret: replacing
// it would only spoil the text.
const shortestSecret = 4

// withoutSecrets removes the values of a request's header from the text of an error.
func withoutSecrets(err error, header http.Header) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for name, values := range header {
		if name == "Accept" || name == "Content-Type" {
			continue
		}
		for _, value := range values {
			scheme, credentials, _ := strings.Cut(value, " ")
			secrets := []string{value, credentials}
			if decoded, err := base64.StdEncoding.DecodeString(credentials); scheme == "Basic" &&
				err == nil {
				_, password, _ := strings.Cut(string(decoded), ":")
				secrets = append(secrets, password)
			}
			for _, secret := range secrets {
				if len(secret) >= shortestSecret {
					text = strings.ReplaceAll(text, secret, "[removed]")
				}
			}
		}
	}
	if text == err.Error() {
		return err
	}
	return &cleanError{text: text, err: err}
}
