package main

import (
	"fmt"
	"go/scanner"
	"go/token"
	"strings"
	"unicode/utf8"
)

const (
	maxColumns = 100
	tabColumns = 4
)

// columns finds lines of Go files that are longer than maxColumns. Exempt are
//   - lines within raw string literals, whose content must not change (SQL, examples),
//   - comments that consist of one word, which can't be divided (a URL),
//   - directives (//go:embed), which must stand on one line,
//   - the expected output of an example.
func columns(r *repository) (findings []string) {
	for path, text := range r.files(".go") {
		raw := rawLines(path, text)
		number, output := 0, false
		for row := range strings.Lines(text) {
			number++
			row = strings.TrimSuffix(row, "\n")
			output = outputRow(row, output)
			if n := width(row); n > maxColumns && !raw[number] && !output && !indivisible(row) {
				findings = append(findings, fmt.Sprintf("%s:%d: %d columns", path, number, n))
			}
		}
	}
	return findings
}

// width counts the columns of a row.
func width(row string) int {
	return utf8.RuneCountInString(row) + (tabColumns-1)*strings.Count(row, "\t")
}

// indivisible reports whether a row is a directive or a comment of one word.
func indivisible(row string) bool {
	text, comment := strings.CutPrefix(strings.TrimSpace(row), "//")
	return comment && (strings.HasPrefix(text, "go:") || len(strings.Fields(text)) == 1)
}

// outputRow reports whether a row belongs to the expected output of an example. before says whether
// the row before did.
func outputRow(row string, before bool) bool {
	text, comment := strings.CutPrefix(strings.TrimSpace(row), "//")
	text = strings.ToLower(strings.TrimSpace(text))
	return comment && (before || strings.HasPrefix(text, "output:") ||
		strings.HasPrefix(text, "unordered output:"))
}

// rawLines returns the numbers of the rows that hold a part of a raw string literal.
func rawLines(path, text string) map[int]bool {
	files := token.NewFileSet()
	file := files.AddFile(path, -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), func(token.Position, string) {}, 0)
	rows := map[int]bool{}
	for {
		position, kind, literal := s.Scan()
		if kind == token.EOF {
			return rows
		}
		if kind == token.STRING && literal[0] == '`' {
			first := file.Line(position)
			for i := range strings.Count(literal, "\n") + 1 {
				rows[first+i] = true
			}
		}
	}
}
