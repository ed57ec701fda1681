package api

import "strings"

// nearest finds the known name that was most likely meant.
func nearest(name string, known []string) (meant string, ok bool) {
	if len(name) > 64 { // no slip of a finger
		return "", false
	}
	best := 1 + max(2, len(name)/3)
	for _, k := range known {
		if d := editDistance(strings.ToLower(name), k); d < best && d < len(k) {
			best, meant = d, k
		}
	}
	return meant, meant != ""
}

// editDistance counts the insertions, deletions and replacements of bytes that turn a into b.
func editDistance(a, b string) int {
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
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
