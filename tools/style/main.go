// Command style checks the text of the repository. Each argument names a check; it reads all files
// that git tracks, prints each finding as FILE:LINE, and exits with status 1 if there is one.
//
//	columns  lines of Go files have at most 100 columns
//	links    relative links and anchors of Markdown pages resolve; pages named in Go files exist
package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

var checks = map[string]func(*repository) []string{
	"columns": columns,
	"links":   links,
}

func main() {
	repo, err := open(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "style:", err)
		os.Exit(2)
	}
	failed := false
	for _, name := range os.Args[1:] {
		check, ok := checks[name]
		if !ok {
			fmt.Fprintf(os.Stderr, "style: no check is called %q; there are %s\n", name,
				strings.Join(slices.Sorted(maps.Keys(checks)), ", "))
			os.Exit(2)
		}
		findings := check(repo)
		for _, finding := range findings {
			fmt.Println(finding)
		}
		if len(findings) > 0 {
			failed = true
			fmt.Printf("style: %s: %d findings\n", name, len(findings))
		}
	}
	if failed {
		os.Exit(1)
	}
}

// repository holds the text files under version control, new files included.
type repository struct {
	paths []string          // sorted
	text  map[string]string // by path
}

// open reads the Go, Markdown and YAML files below a directory.
func open(dir string) (*repository, error) {
	list := exec.Command("git", "-C", dir, "ls-files", "-co", "--exclude-standard",
		"*.go", "*.md", "*.yaml", "*.yml")
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	r := &repository{text: map[string]string{}}
	for path := range strings.Lines(string(out)) {
		path = strings.TrimSuffix(path, "\n")
		text, err := os.ReadFile(dir + "/" + path)
		if os.IsNotExist(err) {
			continue // deleted, but not committed
		}
		if err != nil {
			return nil, err
		}
		r.text[path] = string(text)
	}
	r.paths = slices.Sorted(maps.Keys(r.text))
	return r, nil
}

// files yields the files with one of the suffixes.
func (r *repository) files(suffixes ...string) func(yield func(path, text string) bool) {
	return func(yield func(path, text string) bool) {
		for _, path := range r.paths {
			ends := func(suffix string) bool { return strings.HasSuffix(path, suffix) }
			if slices.ContainsFunc(suffixes, ends) && !yield(path, r.text[path]) {
				return
			}
		}
	}
}
