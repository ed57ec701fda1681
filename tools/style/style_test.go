package main

import (
	"slices"
	"strings"
	"testing"
)

func TestColumns(t *testing.T) {
	long := strings.Repeat("x ", 60)
	r := &repository{
		paths: []string{"a.go"},
		text: map[string]string{"a.go": "package a\n\n" +
			"// " + long + "\n" + // row 3
			"// https://example.org/" + strings.Repeat("x", 100) + "\n" +
			"//go:generate " + long + "\n" +
			"const a = `" + long + "\n" + long + "`\n" +
			strings.Repeat("\t", 25) + "\n" +
			strings.Repeat("\t", 25) + " \n" + // row 9
			"// Output:\n// " + long + "\n",
		},
	}
	want := []string{"a.go:3: 123 columns", "a.go:9: 101 columns"}
	if got := columns(r); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAnchors(t *testing.T) {
	page := "# The API\n## Files\n```\n# code\n```\n## Files\n## `flowcontrol.pools` (by name)\n"
	for anchor, want := range map[string]bool{
		"the-api": true, "files": true, "files-1": true, "flowcontrolpools-by-name": true,
		"files-2": false, "code": false,
	} {
		if got := hasAnchor(page, anchor); got != want {
			t.Errorf("hasAnchor(%q) = %v, want %v", anchor, got, want)
		}
	}
}
