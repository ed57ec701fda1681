package file_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/registry/file"
)

const profiles = "items:\n- name: day\n  spec: {quota: {max_input_size_mb: 7}}\n"

func TestDirectoryIsFollowed(t *testing.T) {
	dir := t.TempDir()
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) {
		t.Helper()
		do(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("profiles.yaml", profiles)
	write("README.md", "no document")
	write(".hidden.yaml", "no document: [")
	do(os.Mkdir(filepath.Join(dir, "sub.yaml"), 0o700))
	d := file.New(dir)
	var c *registry.Catalogs
	names := func() string {
		t.Helper()
		documents, changed, err := d.Read()
		do(err)
		if !changed {
			return "unchanged"
		}
		c = c.Next(time.Now(), documents)
		var names []string
		for _, e := range c.Profiles() {
			names = append(names, e.Item.Name)
		}
		for _, r := range c.Refused() {
			names = append(names, strings.TrimPrefix(r.String(), dir+"/"))
		}
		return strings.Join(names, ", ")
	}
	link := func(text string) { // as a ConfigMap that is mounted is replaced
		do(os.WriteFile(filepath.Join(dir, "..data"), []byte(text), 0o600))
		do(os.Symlink("..data", filepath.Join(dir, "new")))
		do(os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "profiles.yaml")))
	}
	pipe := func() {
		do(os.Remove(filepath.Join(dir, "profiles.yaml")))
		do(syscall.Mkfifo(filepath.Join(dir, "profiles.yaml"), 0o600))
	}
	first := true
	for _, step := range []struct {
		what string
		do   func()
		want string
	}{
		{"at first", func() {}, "day"},
		{"nothing", func() {}, "unchanged"},
		{"another file", func() { write("more.yml", strings.ReplaceAll(profiles, "day", "night")) },
			"day, night"},
		{"a typo", func() { write("more.yml", strings.Replace(profiles, "day", "night: [", 1)) },
			"day, night, more.yml:2: mapping values are not allowed in this context"},
		{"the typo is gone", func() { write("more.yml", "") }, "day"},
		{"a link", func() { link(strings.ReplaceAll(profiles, "day", "evening")) }, "evening"},
		{"a pipe", pipe, "evening, profiles.yaml: is no regular file"},
		{"it is removed", func() { do(os.Remove(filepath.Join(dir, "profiles.yaml"))) }, ""},
	} {
		step.do()
		if step.want != "unchanged" && !first {
			if got := names(); got != "unchanged" { // somebody may be writing
				t.Errorf("%s: got %q in the first look", step.what, got)
			}
		}
		first = false
		if got := names(); got != step.want {
			t.Errorf("%s: got %q, want %q", step.what, got, step.want)
		}
	}
	do(os.RemoveAll(dir))
	if _, changed, err := d.Read(); err == nil || changed {
		t.Errorf("a directory that is gone: changed %v, %v", changed, err)
	}
}

// A file that never stays the same is read all the same.
func TestFilesThatAlwaysChangeAreRead(t *testing.T) {
	dir := t.TempDir()
	d := file.New(dir)
	if _, _, err := d.Read(); err != nil {
		t.Fatal(err)
	}
	reads := 0
	for i := range 60 {
		text := strings.Repeat("# a comment\n", i) + profiles
		if err := os.WriteFile(filepath.Join(dir, "p.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, changed, err := d.Read(); err != nil {
			t.Fatal(err)
		} else if changed {
			reads++
		}
	}
	if reads < 9 || reads > 12 {
		t.Errorf("%d reads of 60 versions", reads)
	}
}
