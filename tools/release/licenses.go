package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licensesFile has the texts of the licenses of all modules in the programs, which most of them
// require of who passes programs on.
const licensesFile = "THIRD_PARTY_LICENSES"

var licenseName = regexp.MustCompile(
	`(?i)^((un)?licen[cs]e|copying|notice|patents)([-.][a-z0-9.-]*)?$`)

// moduleRow has go list print a module with its version, and the directory of its sources.
const moduleRow = `{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}{{"\t"}}{{.Dir}}{{end}}{{end}}`

// licenses returns the content of licensesFile for programs of the platforms.
func licenses(platforms []string) ([]byte, error) {
	dirs := map[string]string{} // by module and version
	for _, platform := range platforms {
		goos, goarch, _ := strings.Cut(platform, "/")
		listed, err := output("env", "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0", "go", "list",
			"-deps", "-f", moduleRow, "./cmd/tidefill")
		if err != nil {
			return nil, err
		}
		for module := range strings.Lines(listed) {
			if name, dir, ok := strings.Cut(strings.TrimSpace(module), "\t"); ok {
				dirs[name] = dir
			}
		}
	}
	root, err := output("go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	dirs["the Go standard library"] = strings.TrimSpace(root)
	return joinLicenses(dirs)
}

// joinLicenses joins the license files of directories, under the names of these.
func joinLicenses(dirs map[string]string) ([]byte, error) {
	names := map[string][]string{} // of what has the same texts, by the texts
	var faults []error
	for name, dir := range dirs {
		text, err := licensesIn(dir)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", name, err))
		}
		names[text] = append(names[text], name)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	var parts []string
	for text, with := range names {
		slices.Sort(with)
		parts = append(parts, strings.Join(with, "\n")+"\n\n"+text)
	}
	slices.Sort(parts)
	rule := "\n" + strings.Repeat("=", 80) + "\n\n"
	const head = "Tidefill contains these modules, each under the license below its name.\n"
	return []byte(head + rule + strings.Join(parts, rule)), nil
}

// licensesIn returns the license files of a directory, one after the other.
func licensesIn(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var texts []string
	for _, e := range entries {
		if e.IsDir() || !licenseName.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", err
		}
		text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
		texts = append(texts, strings.Trim(string(text), "\n")+"\n")
	}
	if len(texts) == 0 {
		return "", fmt.Errorf("%s has no license file; look for its license, and have %s find it",
			dir, "tools/release/licenses.go")
	}
	return strings.Join(texts, "\n"), nil
}
