// Package suggest finds the known name that a mistyped one most likely means. Messages about
// unknown keys, policies and fields end with what it finds.
package suggest

import (
	"path"
	"strings"
)

// longest bounds the length of a name that is compared. A longer one is no typing mistake, and the
// comparison takes time in proportion to its length.
const longest = 64

// Nearest returns the known name with the fewest edits to name, the first of several. It returns
// the empty string if all differ in more than a third of name's letters, two letters at least; then
// the only known one that begins with name, or is name after a prefix with a slash, as names of
// models are. Upper and lower case are the same.
func Nearest(name string, known []string) string {
	if len(name) > longest {
		return ""
	}
	name = strings.ToLower(name)
	nearest, least := "", max(2, len(name)/3)+1
	for _, k := range known {
		if d := distance(name, strings.ToLower(k)); d < least && d < len(k) {
			nearest, least = k, d
		}
	}
	if nearest == "" && len(name) >= shortest {
		return onlyLonger(name, known)
	}
	return nearest
}

// shortest is the number of letters that show which longer name is meant.
const shortest = 3

// onlyLonger returns the known name that name is the beginning of, or the end after a slash, if
// there is only one. name has small letters.
func onlyLonger(name string, known []string) (longer string) {
	for _, k := range known {
		small := strings.ToLower(k)
		_, base := path.Split(small)
		if !strings.HasPrefix(small, name) && !strings.HasPrefix(base, name) {
			continue
		}
		if longer != "" {
			return ""
		}
		longer = k
	}
	return longer
}

// distance is Levenshtein's: the least number of bytes to insert, delete or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
