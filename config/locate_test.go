package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/config"
)

// A fault of a key that is missing, or that its neighbours cause, has the place of the nearest
// section; one of no section that of the file.
func TestFaultsHaveAPlace(t *testing.T) {
	for text, want := range map[string]string{
		"upstreams:\n-\n":                                 `t.yaml:2: upstreams[0].url is ""`,
		"\nupstreams:\n- {}":                              `t.yaml:3: upstreams[0].url is ""`,
		"webhooks:\n- name: a\n  url: http://a\n":         "t.yaml:2: webhooks[0].secret_env: is",
		"node: a\npools:\n- name: a\n  max: 1\n":          "t.yaml:3: pools[0].models: is empty",
		"node: a\n---\nnode: b\n":                         "t.yaml:2: a second YAML document",
		"node: a\n---\nnode: [b\n":                        "t.yaml:3: did not find expected",
		"node: a\ndata: b\x01\n":                          "t.yaml:2: control characters",
		"node: a\nlog: *none\n":                           "t.yaml:2: unknown anchor",
		"flowcontrol:\n  foo: [1, 2\nbar: 1\n":            "t.yaml:2: did not find expected ','",
		"upstreams:\n- url: http://a\n  metrics: ftp://x": "t.yaml:3: upstreams[0].metrics is",
		"upstreams:\n- url: http://a\n  models: ['']":     "t.yaml:3: upstreams[0].models[0]: is",
		"pools:\n- {name: a, max: 1,\n   models: [' ']}":  "t.yaml:3: pools[0].models[0]: is",
		"upstreams: [{url: http://a, pool: p}]\n": "t.yaml:1: upstreams[0].pool: there is no " +
			`pool "p"; list it in pools`,
	} {
		_, err := config.Parse("t.yaml", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
	_, err := config.Parse("t.yaml", []byte("upstreams: [{url: http://a}]\n"),
		config.Setting{Origin: "--upstream", Path: "upstreams", Value: `[{"name": "a"}]`})
	if err == nil || !strings.HasPrefix(err.Error(), `--upstream: upstreams[0].url is ""`) {
		t.Errorf("got %v, want the flag as the place", err)
	}
}

// Others than this package find faults of a configuration too. Texts that start with no key stay.
func TestFaultsOfOthersGetAPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "upstreams.yaml")
	if err := os.WriteFile(path, []byte("node: a\ntelemetry:\n  signals: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := config.File{Path: path, Settings: []config.Setting{{Origin: "--set telemetry.every",
		Path: "telemetry.every", Value: "2s"}}}
	if _, err := file.Load(); err != nil {
		t.Fatal(err)
	}
	err := file.Locate(errors.Join(errors.New("telemetry.signals: open x: no such file"),
		errors.New("telemetry.prometheus.url: is away"), errors.New("tls: no certificate"),
		errors.New("open the store: locked")))
	want := path + ":3: telemetry.signals: open x: no such file\n" +
		path + ":3: telemetry.prometheus.url: is away\n" +
		path + ": tls: no certificate\nopen the store: locked"
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if err := file.Locate(nil); err != nil {
		t.Errorf("no fault became %v", err)
	}
}

// A running daemon reads regular files only, through links too; at start it may read a pipe.
func TestOnlyRegularFilesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	if _, err := config.Reload(dir); err == nil ||
		!strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a directory: %v", err)
	}
	if _, err := config.Reload(os.DevNull); err == nil ||
		!strings.Contains(err.Error(), "is a device; put a regular file there") {
		t.Errorf("a device: %v", err)
	}
	if _, err := config.Load(os.DevNull); err != nil {
		t.Errorf("a device at start: %v", err)
	}
	file, link := filepath.Join(dir, "f"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("node: a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if cfg, err := config.Reload(link); err != nil || cfg.Node != "a" {
		t.Errorf("a link: %v", err)
	}
}
