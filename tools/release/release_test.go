package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// Versions of Debian are in the order of the releases.
func TestDebianVersionsAreInOrder(t *testing.T) {
	ordered := []struct{ version, want string }{
		{"0f99df64", "0~20261129.0f99df64"},
		{"v0.1.0-rc.1", "0.1.0~rc.1"},
		{"v0.1.0-rc.1-2-g0f99df6", "0.1.0~rc.1+2.g0f99df6"},
		{"v0.1.0-rc.2", "0.1.0~rc.2"},
		{"v0.1.0", "0.1.0"},
		{"v0.1.0-3-g0f99df6", "0.1.0+3.g0f99df6"},
		{"v0.1.1", "0.1.1"},
		{"v0.10.0", "0.10.0"},
	}
	_, err := exec.LookPath("dpkg")
	for i, v := range ordered {
		got := debianVersion(v.version, noon)
		if got != v.want {
			t.Errorf("%s is %s, want %s", v.version, got, v.want)
		}
		if i > 0 && err == nil {
			before := debianVersion(ordered[i-1].version, noon)
			if exec.Command("dpkg", "--compare-versions", before, "lt", got).Run() != nil {
				t.Errorf("dpkg does not take %s for earlier than %s", before, got)
			}
		}
	}
}

func TestTarballsDependOnNothingElse(t *testing.T) {
	files := []file{{"b/c", 0o644, []byte("c")}, {"a", 0o755, []byte("a")}}
	first, err := tarball("x/", files, noon)
	if err != nil {
		t.Fatal(err)
	}
	files[0], files[1] = files[1], files[0]
	second, err := tarball("x/", files, noon.In(time.FixedZone("east", 3600)))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("another order and another zone give other bytes")
	}
}

func TestManualPage(t *testing.T) {
	const help = `Upload files. A FILE has lines; "-" is standard
input.

  NAME   a variable

Usage:
  tidefill submit FILE... [flags]

Results:
  -o, --out directory    where results go
      --dry-run          create none

Use "tidefill submit --help" for more.
`
	r := release{version: "v0.1.0", at: noon}
	got := r.page("tidefill-submit", "Upload files", sectionsOf(help), []string{"tidefill"})
	const want = `.TH TIDEFILL-SUBMIT 1 2026-11-29 "tidefill v0.1.0" Tidefill
.SH NAME
tidefill\-submit \- Upload files
.SH DESCRIPTION
Upload files. A FILE has lines; "\-" is standard
input.
.PP
.PP
.nf
  NAME   a variable
.fi
.PP
.SH SYNOPSIS
.PP
.nf
  tidefill submit FILE... [flags]
.fi
.PP
.SH "RESULTS"
.TP
\fB\-o, \-\-out\fR\fI directory\fR
where results go
.TP
\fB\-\-dry\-run\fR\fI\fR
create none
.PP
.SH SEE ALSO
.BR tidefill (1),
https://github.com/tidefill/tidefill
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := escaped(`.a\b`, false); got != `\&.a\eb` || strings.HasPrefix(got, ".") {
		t.Errorf("a row that begins with a dot is %q", got)
	}
}

func TestLicensesAreJoined(t *testing.T) {
	write := func(files map[string]string) (dir string) {
		dir = t.TempDir()
		for name, content := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	got, err := joinLicenses(map[string]string{
		"b v1": write(map[string]string{"LICENSE": "\nfree\r\nof charge\n\n"}),
		"a v2": write(map[string]string{"LICENSE.md": "free\nof charge"}),
		"c v1": write(map[string]string{"COPYING": "share", "NOTICE.txt": "by C",
			"licenses.go": "x"}),
	})
	rule := "\n" + strings.Repeat("=", 80) + "\n\n"
	want := "Tidefill contains these modules, each under the license below its name.\n" + rule +
		"a v2\nb v1\n\nfree\nof charge\n" + rule + "c v1\n\nshare\n\nby C\n"
	if err != nil || string(got) != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
	_, err = joinLicenses(map[string]string{"d v1": write(map[string]string{"README": "free"})})
	if err == nil || !strings.Contains(err.Error(), "d v1: ") {
		t.Errorf("without a license: %v", err)
	}
}
