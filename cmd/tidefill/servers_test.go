package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/internal/httpserver"
	"github.com/tidefill/tidefill/internal/httpserver/tlstest"
)

// ask sends a request as a browser's page would; header is pairs of names and values, Host among
// them.
func ask(t *testing.T, method, url, body string, header ...string) (status int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode
}

// Without keys, a page in a browser of this machine can neither read by a name of its own nor make
// anything.
func TestWebPagesCannotDriveAKeylessDaemon(t *testing.T) {
	d, _ := startDaemon(t, t.TempDir(), startRunner(t, nil))
	for _, test := range []struct {
		name, method, url string
		header            []string
		want              int
	}{
		{"files by a rebound name", "GET", d.url() + "/v1/files", []string{"Host",
			"evil.example.com"}, 421},
		{"profiles by a rebound name", "GET", d.adminURL() + "/debug/pprof/heap", []string{"Host",
			"evil.example.com:8081"}, 421},
		{"a profile as an image", "GET", d.adminURL() + "/debug/pprof/profile?seconds=60", []string{
			"Sec-Fetch-Site", "cross-site"}, 403},
		{"a form", "POST", d.url() + "/v1/files", []string{"Origin", "https://evil.example.com",
			"Content-Type", "multipart/form-data; boundary=x"}, 403},
		{"text", "POST", d.url() + "/v1/batches", []string{"Content-Type", "text/plain"}, 415},
		{"a client", "GET", d.url() + "/v1/files", nil, 200},
		{"a probe", "GET", d.adminURL() + "/readyz", []string{"Host", "10.1.2.3:8081"}, 200},
	} {
		if got := ask(t, test.method, test.url, "{}", test.header...); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
	}
}

func TestHostsAreUncheckedWithKeys(t *testing.T) {
	keys, err := api.ParseKeys("secret")
	if err != nil {
		t.Fatal(err)
	}
	d, _ := startDaemonWith(t, t.TempDir(), keys, startRunner(t, nil))
	if got := ask(t, "GET", d.url()+"/v1/files", "", "Host", "tidefill.example.com",
		"Authorization", "Bearer secret"); got != 200 {
		t.Errorf("got %d", got)
	}
}

// replace writes a file in one step, as editors and Kubernetes do.
func replace(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// awaitStatus asks until the answer has the status.
func awaitStatus(t *testing.T, want int, status func() int) {
	t.Helper()
	got := 0
	for deadline := time.Now().Add(10 * reloadEvery); got != want; time.Sleep(
		20 * time.Millisecond) {
		if got = status(); got != want && time.Now().After(deadline) {
			t.Fatalf("got %d, want %d", got, want)
		}
	}
}

func TestKeysFileIsReadAgain(t *testing.T) {
	keysFile := func(key string) string { return "keys: [{hash: '" + api.HashKey(key) + "'}]\n" }
	path := writeFile(t, "keys.yaml", keysFile("old-secret"))
	cfg := testConfig(t.TempDir(), startRunner(t, nil))
	cfg.Auth.KeysFile = path
	keys, err := loadKeys(cfg)
	if err != nil {
		t.Fatal(err)
	}
	d, _ := runDaemonUntilEnd(t, cfg, keys)
	status := func(key string) int {
		return ask(t, "GET", d.url()+"/v1/files", "", "Authorization", "Bearer "+key)
	}
	if got := status("old-secret"); got != 200 {
		t.Fatalf("got %d", got)
	}
	replace(t, path, keysFile("new-secret"))
	awaitStatus(t, 401, func() int { return status("old-secret") })
	if got := status("new-secret"); got != 200 {
		t.Errorf("the new key got %d", got)
	}
	// none of which may let everybody in
	for _, broken := range []string{"", "keys: []", "keys: [{hash: new-secret}]"} {
		replace(t, path, broken)
		d.reloadKeys(t.Context(), true)
		if got, other := status("new-secret"), status("any"); got != 200 || other != 401 {
			t.Errorf("with the file %q the key got %d, another %d", broken, got, other)
		}
	}
}

func TestTLSDaemon(t *testing.T) {
	dir := t.TempDir()
	authority := tlstest.NewAuthority(t)
	cert, key, ca := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"),
		filepath.Join(dir, "ca.pem")
	authority.WriteCA(ca)
	authority.WritePair(cert, key)
	cfg := testConfig(t.TempDir(), startRunner(t, nil))
	cfg.TLS = httpserver.TLSConfig{CertFile: cert, KeyFile: key, ClientCAFile: ca}
	d, _ := runDaemonUntilEnd(t, cfg, nil)
	if !strings.HasPrefix(d.url(), "https://") || !strings.HasPrefix(d.adminURL(), "https://") {
		t.Fatalf("serves %s and %s", d.url(), d.adminURL())
	}
	t.Setenv("TIDEFILL_SERVER", d.url())
	if got := must(t, exitError, "batch", "list"); !strings.Contains(got.errors,
		"TIDEFILL_CA_FILE") {
		t.Errorf("an unknown authority: %s", got.errors)
	}
	t.Setenv("TIDEFILL_CA_FILE", ca)
	must(t, exitError, "batch", "list") // without a certificate of its own
	own, ownKey := filepath.Join(dir, "own.pem"), filepath.Join(dir, "own.key")
	authority.WritePair(own, ownKey)
	must(t, exitOK, "batch", "submit", writeFile(t, "in.jsonl", batchLines(3)), "--wait",
		"--cert-file", own, "--key-file", ownKey)
}

func TestHangupReadsFilesAgain(t *testing.T) {
	path := writeFile(t, "keys.yaml", "keys: [{hash: '"+api.HashKey("old-secret")+"'}]\n")
	p, url := startProcess(t, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "",
		"--data", t.TempDir(),
		"--upstream", startRunner(t, nil), "--set", "auth.keys_file="+path)
	replace(t, path, "keys: [{hash: '"+api.HashKey("new-secret")+"'}]\n")
	if err := p.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, 200, func() int {
		return ask(t, "GET", url+"/v1/files", "", "Authorization", "Bearer new-secret")
	})
}
