package experiment

import "strings"

// ShellWord returns a text as one word of a POSIX shell's command, quoted if it needs to be.
func ShellWord(text string) string {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=%@:,./"
	special := func(r rune) bool { return !strings.ContainsRune(plain, r) }
	if text == "" || strings.ContainsFunc(text, special) {
		return ShellQuoted(text)
	}
	return text
}

// ShellQuoted returns a text in single quotes, within which a shell changes nothing.
func ShellQuoted(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
