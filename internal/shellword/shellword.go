// Package shellword quotes text for the command line of a POSIX shell.
package shellword

import "strings"

// Of returns a text as one word of a POSIX shell's command, quoted if it needs to be.
func Of(text string) string {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=%@:,./"
	special := func(r rune) bool { return !strings.ContainsRune(plain, r) }
	if text == "" || strings.ContainsFunc(text, special) {
		return Quoted(text)
	}
	return text
}

// Quoted returns a text in single quotes, within which a shell changes nothing.
func Quoted(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
