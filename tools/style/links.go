package main

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"
	"unicode"
)

var (
	link     = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	fence    = regexp.MustCompile("(?ms)^ *```.*?^ *```$") //nolint:gocritic // ^ begins a row
	code     = regexp.MustCompile("`[^`\n]*`")
	namedDoc = regexp.MustCompile(`\b(?:simulator/lab/)?docs/[a-z0-9/-]+\.md\b`)

	namedTest = regexp.MustCompile(`\b(Test|Benchmark|Fuzz)[A-Z]\w+`)
	test      = regexp.MustCompile(`(?m)^func ((Test|Benchmark|Fuzz)[A-Z]\w+)`)
)

// links finds relative links of Markdown pages to files and headings that don't exist, tests that a
// page names and that don't exist, packages without a row in the map of packages, and pages below
// docs that a Go file names and that don't exist.
func links(r *repository) (findings []string) {
	tests := r.tests()
	for page, text := range r.files(".md") {
		text = fence.ReplaceAllStringFunc(text, blank)
		number := 0
		for row := range strings.Lines(text) {
			number++
			for _, name := range namedTest.FindAllString(row, -1) {
				if !tests[name] && strings.HasPrefix(page, "docs/") {
					findings = append(findings, fmt.Sprintf("%s:%d: no test %s", page, number,
						name))
				}
			}
			for _, match := range link.FindAllStringSubmatch(code.ReplaceAllString(row, ""), -1) {
				if fault := r.follow(page, match[1]); fault != "" {
					findings = append(findings, fmt.Sprintf("%s:%d: %s", page, number, fault))
				}
			}
		}
	}
	findings = append(findings, r.unmapped()...)
	for file, text := range r.files(".go") {
		number := 0
		for row := range strings.Lines(text) {
			number++
			for _, page := range namedDoc.FindAllString(row, -1) {
				if r.text[page] == "" {
					findings = append(findings, fmt.Sprintf("%s:%d: no page %s", file, number,
						page))
				}
			}
		}
	}
	return findings
}

// laboratory is the directory of a module with pages of its own.
const laboratory = "simulator/lab"

// packageMap returns the page that lists a package of the module or of the laboratory, and the name
// of the package there.
func packageMap(dir string) (page, name string) {
	if name, in := strings.CutPrefix(dir, laboratory+"/"); in {
		return laboratory + "/README.md", name
	}
	return "docs/architecture.md", dir
}

// unmapped finds packages that their packageMap does not list. Packages below the internal
// directory of another package are details of that package.
func (r *repository) unmapped() (findings []string) {
	seen := map[string]bool{}
	for file := range r.files(".go") {
		dir := path.Dir(file)
		if seen[dir] || dir == "." || strings.HasSuffix(file, "_test.go") ||
			strings.Contains(dir, "/internal/") || strings.HasPrefix(dir, "internal/") &&
			strings.Count(dir, "/") > 1 {
			continue
		}
		seen[dir] = true
		top, _, _ := strings.Cut(dir, "/")
		page, name := packageMap(dir)
		if top != "e2e" && top != "tools" && !strings.Contains(r.text[page], "`"+name+"`") {
			findings = append(findings, fmt.Sprintf("%s: no row for package %s", page, name))
		}
	}
	return findings
}

// tests returns the names of all tests, benchmarks and fuzz targets, and of the suites.
func (r *repository) tests() map[string]bool {
	names := map[string]bool{}
	for _, text := range r.files(".go") {
		for _, match := range test.FindAllStringSubmatch(text, -1) {
			names[match[1]] = true
		}
	}
	return names
}

// blank removes a block of code, but keeps its rows, so that numbers of rows stay right.
func blank(block string) string { return strings.Repeat("\n", strings.Count(block, "\n")) }

// follow returns what is wrong with a link of a page, or "".
func (r *repository) follow(page, target string) string {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return ""
	}
	file, anchor, _ := strings.Cut(target, "#")
	if file == "" {
		file = page
	} else {
		file = path.Join(path.Dir(page), file)
	}
	if _, err := os.Stat(file); err != nil {
		return "no file " + file
	}
	if text, known := r.text[file]; anchor != "" && known && !hasAnchor(text, anchor) {
		return fmt.Sprintf("no heading #%s in %s", anchor, file)
	}
	return ""
}

// hasAnchor reports whether a page has a heading whose anchor is the given one.
func hasAnchor(text, anchor string) bool {
	used := map[string]int{}
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		name := anchorOf(match[1])
		if n := used[name]; n > 0 {
			used[name]++
			name = fmt.Sprintf("%s-%d", name, n)
		} else {
			used[name] = 1
		}
		if name == anchor {
			return true
		}
	}
	return false
}

// anchorOf returns the anchor that forges give to a heading: letters and digits in lower case,
// hyphens for spaces, and nothing for other characters.
func anchorOf(heading string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(heading) {
		switch {
		case unicode.IsLetter(c) || unicode.IsDigit(c) || c == '-' || c == '_':
			b.WriteRune(c)
		case c == ' ':
			b.WriteByte('-')
		}
	}
	return b.String()
}
