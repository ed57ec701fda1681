package main

import (
	"fmt"
	"regexp"
	"strings"
)

// replaced maps words that we don't use to what to write instead. docs/architecture.md has the
// glossary.
var replaced = map[string]string{
	"contestant": "candidate",
	"deeds":      "driver",
	"doubt":      "staleness or uncertainty",
	"heed":       "respect or use",
	"keeper":     "reconciler",
	"learnt":     "learned",
	"reins":      "cancel handle",
	"shelf":      "cache",
	"stoker":     "filler",
	"tell":       "run, simulate, report, configure, record, notify or distinguish",
	"telling":    "running, simulating, reporting",
	"tells":      "reports, shows, distinguishes",
	"theta":      "target share",
	"told":       "run, simulated, reported, configured, recorded or notified",
}

// word matches a word of a text or of an identifier in mixed caps.
var word = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// words finds words that the glossary replaces, in comments, identifiers, configuration and pages.
// CHANGELOG.md is exempt, because it lists old names, and so is this program.
func words(r *repository) (findings []string) {
	for path, text := range r.files(".go", ".md", ".yaml", ".yml") {
		if path == "CHANGELOG.md" || strings.HasPrefix(path, "tools/style/") {
			continue
		}
		number := 0
		for row := range strings.Lines(text) {
			number++
			for _, found := range word.FindAllString(row, -1) {
				if instead, ok := replaced[strings.ToLower(found)]; ok {
					findings = append(findings, fmt.Sprintf("%s:%d: %q; write %s", path, number,
						found, instead))
				}
			}
		}
	}
	return findings
}
