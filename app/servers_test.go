package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/internal/apptest"
)

// Without keys, a page in a browser of this machine can neither read through a host name of its own
// nor create anything.
func TestWebPagesCannotUseAKeylessDaemon(t *testing.T) {
	a := start(t)
	for _, test := range []struct {
		name, method, url string
		header            []string
		want              int
	}{
		{"files through a rebound name", "GET", a.URL() + "/v1/files",
			[]string{"Host", "evil.example.com"}, 421},
		{"profiles through a rebound name", "GET", a.AdminURL() + "/debug/pprof/heap",
			[]string{"Host", "evil.example.com:8081"}, 421},
		{"a profile as an image", "GET", a.AdminURL() + "/debug/pprof/profile?seconds=60",
			[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"decisions through a rebound name", "GET", a.AdminURL() + "/admin/pools",
			[]string{"Host", "evil.example.com"}, 421},
		{"decisions by a script", "GET", a.AdminURL() + "/admin/pools",
			[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"batches in a window", "GET", a.AdminURL() + "/admin/batches",
			[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate",
				"Sec-Fetch-Dest", "document"}, 403},
		{"the console in a frame", "GET", a.AdminURL() + "/console",
			[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate",
				"Sec-Fetch-Dest", "iframe"}, 403},
		{"a link to the console", "GET", a.AdminURL() + "/console",
			[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate",
				"Sec-Fetch-Dest", "document"}, 200},
		{"a form", "POST", a.URL() + "/v1/files", []string{"Origin", "https://evil.example.com",
			"Content-Type", "multipart/form-data; boundary=x"}, 403},
		{"text", "POST", a.URL() + "/v1/batches", []string{"Content-Type", "text/plain"}, 415},
		{"a client", "GET", a.URL() + "/v1/files", nil, 200},
		{"a health check", "GET", a.AdminURL() + "/readyz", []string{"Host", "10.1.2.3:8081"}, 200},
	} {
		if got := send(t, test.method, test.url, "{}", test.header...); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
	}
}

func TestHostsAreUncheckedWithKeys(t *testing.T) {
	keys, err := api.ParseKeys("secret")
	if err != nil {
		t.Fatal(err)
	}
	a, _ := apptest.Start(t, apptest.Config(t.TempDir(), apptest.StartRunner(t, nil)),
		app.Options{Keys: keys})
	if got := send(t, "GET", a.URL()+"/v1/files", "", "Host", "tidefill.example.com",
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

// awaitStatus repeats a request until the answer has the status.
func awaitStatus(t *testing.T, want int, status func() int) {
	t.Helper()
	got := 0
	deadline := time.Now().Add(20 * time.Second)
	for ; got != want; time.Sleep(20 * time.Millisecond) {
		if got = status(); got != want && time.Now().After(deadline) {
			t.Fatalf("got %d, want %d", got, want)
		}
	}
}

func TestKeysFileIsReadAgain(t *testing.T) {
	keysFile := func(key string) string { return "keys: [{hash: '" + api.HashKey(key) + "'}]\n" }
	path := filepath.Join(t.TempDir(), "keys.yaml")
	replace(t, path, keysFile("old-secret"))
	cfg := apptest.Config(t.TempDir(), apptest.StartRunner(t, nil))
	cfg.Auth.KeysFile = path
	signals := make(chan os.Signal)
	a, _ := apptest.Start(t, cfg, app.Options{Reload: signals})
	status := func(key string) int {
		return send(t, http.MethodGet, a.URL()+"/v1/files", "", "Authorization", "Bearer "+key)
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
		signals <- os.Interrupt
		signals <- os.Interrupt // is received when the first one has been handled
		if got, other := status("new-secret"), status("any"); got != 200 || other != 401 {
			t.Errorf("with the file %q the key got %d, another %d", broken, got, other)
		}
	}
}
