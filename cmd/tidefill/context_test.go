package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/client"
)

// homeOf gives a test a configuration directory of its own, without variables of a daemon.
func homeOf(t *testing.T) (contextFile string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	for _, name := range []string{"SERVER", "ADMIN", "API_KEY", "TENANT", "CONTEXT"} {
		t.Setenv("TIDEFILL_"+name, "")
	}
	t.Setenv("OPENAI_BASE_URL", "")
	return filepath.Join(home, "tidefill", "contexts.yaml")
}

// startNamed serves a daemon that answers its name as a batch's id, and what key it got.
func startNamed(t *testing.T, name string) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		_, _ = w.Write([]byte(`{"data":[{"id":"` + name + `:` + key + `"}]}`))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestContexts(t *testing.T) {
	file := homeOf(t)
	a, b := startNamed(t, "a"), startNamed(t, "b")
	must(t, exitOK, "context", "add", "prod", "--server", a, "--api-key", "k1")
	if got := commandWith(t, "k2\n", "context", "add", "test", "--server", b, "--api-key",
		"-"); got.status != exitOK {
		t.Fatal(got.errors)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the file with keys: %v, %v", info, err)
	}
	calls := func(want string, args ...string) {
		t.Helper()
		got := must(t, exitOK, append([]string{"batches", "-q"}, args...)...)
		if got.out != want+"\n" {
			t.Errorf("%q calls %s, want %s", args, got.out, want)
		}
	}
	calls("a:k1") // the first becomes the current one
	calls("b:k2", "--context", "test")
	must(t, exitOK, "context", "use", "test")
	calls("b:k2")
	calls("b:k3", "--api-key", "k3")
	calls("a:", "--server", a) // no key of another daemon
	t.Setenv("TIDEFILL_SERVER", a)
	t.Setenv("TIDEFILL_API_KEY", "k4")
	calls("a:k4")
	calls("b:k2", "--context", "test")
	t.Setenv("TIDEFILL_CONTEXT", "prod")
	calls("a:k1")
	list := must(t, exitOK, "context", "list")
	if !strings.Contains(list.out, "*        test  "+b+"  yes") || strings.Contains(list.out,
		"k1") {
		t.Errorf("list:\n%s", list.out)
	}
	if got := must(t, exitUsage, "explain", "--context", "prod"); !strings.Contains(got.errors,
		"tidefill context add prod --admin URL") {
		t.Errorf("explain without an admin address: %s", got.errors)
	}
	must(t, exitOK, "context", "add", "prod", "--admin", b)
	calls("a:k1", "--context", "prod")
	if got := must(t, exitOK, "__complete", "context", "use", ""); !strings.Contains(got.out,
		"prod\ntest\n") {
		t.Errorf("names complete to %s", got.out)
	}
	must(t, exitUsage, "context", "use", "pord")
	must(t, exitUsage, "context", "add", "bad", "--server", "gpu-1")
	must(t, exitOK, "context", "rm", "test")
	if got := must(t, exitOK, "context", "ls", "-q"); got.out != "prod\n" {
		t.Errorf("names:\n%s", got.out)
	}
}

func TestVariablesOfOpenAI(t *testing.T) {
	homeOf(t)
	a, b := startNamed(t, "a"), startNamed(t, "b")
	t.Setenv("OPENAI_BASE_URL", a+"/v1")
	t.Setenv("OPENAI_API_KEY", "k")
	for want, args := range map[string][]string{
		"a:k":  {},
		"a:k5": {"--api-key", "k5"},
		"b:":   {"--server", b}, // most likely, the key is none of this daemon
	} {
		if got := must(t, exitOK, append([]string{"batches", "-q"}, args...)...); got.out !=
			want+"\n" {
			t.Errorf("%q calls %s, want %s", args, got.out, want)
		}
	}
	t.Setenv("OPENAI_BASE_URL", "https://api.openai.com/v1")
	r := new(remote)
	if of, err := r.connection(); err != nil || of.Server != client.DefaultServer ||
		of.APIKey != "" {
		t.Errorf("OpenAI's own address leads to %+v, %v", of, err)
	}
}
