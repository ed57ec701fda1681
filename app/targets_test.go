package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/store"
)

func target(pool, url, keyFile string) dispatch.Target {
	return dispatch.Target{Pool: pool, Models: []string{"m"},
		Target: store.Target{URL: url, KeyFile: keyFile}}
}

func poolsOf(cfg config.Config) (pools []string) {
	for _, u := range cfg.Upstreams {
		pools = append(pools, u.Pool)
	}
	return pools
}

// A target that can't be used does not keep others from being used.
func TestTargetsAreJudgedAlone(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		writeFile(t, filepath.Join(dir, name), content)
		return filepath.Join(dir, name)
	}
	const url = "http://127.0.0.1:1"
	used := []dispatch.Target{
		target("query", url+"?a=b", ""),
		target("endpoint", url+"/v1/chat/completions", ""),
		target("missing", url, filepath.Join(dir, "missing")),
		target("empty", url, file("empty", " \n")),
		target("two rows", url, file("rows", "TOPSECRET\nTOPSECRET\n")),
		target("device", url, os.DevNull),
		target("good", url, file("good", "TOPSECRET\n")),
	}
	all := newTargets()
	if got := poolsOf(all.with(config.Default(), used)); !slices.Equal(got, []string{"good"}) {
		t.Errorf("in use are %q, want the good one alone", got)
	}
	problems := all.away()
	if len(problems) != len(used)-1 {
		t.Errorf("problems: %q", problems)
	}
	if text := strings.Join(problems, "\n"); strings.Contains(text, "TOPSECRET") {
		t.Errorf("a problem shows a key: %s", text)
	}
}

// Another key makes another runner, and nothing is made again while no key changes.
func TestKeysOfTargetsAreFollowed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	used := []dispatch.Target{target("p", "http://127.0.0.1:1", file)}
	all := newTargets()
	states := map[string]bool{"": true}
	step := func(what string, change func(), want int) {
		t.Helper()
		change()
		if !all.keysChanged() {
			t.Errorf("%s is not noticed", what)
		}
		cfg := all.with(config.Default(), used)
		if len(cfg.Upstreams) != want {
			t.Fatalf("%s: %d upstreams, want %d", what, len(cfg.Upstreams), want)
		}
		if want > 0 && states[cfg.Upstreams[0].KeyState] {
			t.Errorf("%s: the runner stays", what)
		} else if want > 0 {
			states[cfg.Upstreams[0].KeyState] = true
		}
		if all.keysChanged() {
			t.Errorf("after %s, keys change all the time", what)
		}
	}
	if got := len(all.with(config.Default(), used).Upstreams); got != 0 || all.keysChanged() {
		t.Errorf("%d upstreams without the key", got)
	}
	step("a key", func() { writeFile(t, file, "one") }, 1)
	step("another", func() { writeFile(t, file, "other") }, 1)
	step("its end", func() { _ = os.Remove(file) }, 0)
	step("its return", func() { writeFile(t, file, "third") }, 1)
}
