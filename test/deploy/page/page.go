// Package page reads the code blocks of documentation pages.
package page

import "strings"

// Block is a fenced code block.
type Block struct {
	Language string
	Row      int // of its first row of code
	Text     string
}

// Blocks returns the code blocks of a page in Markdown. Indentation of a block is removed.
func Blocks(markdown string) []Block {
	var blocks []Block
	var open *Block
	indent := 0
	for i, row := range strings.Split(markdown, "\n") {
		trimmed := strings.TrimLeft(row, " ")
		fence, fenced := strings.CutPrefix(trimmed, "```")
		switch {
		case open == nil && fenced:
			open, indent = &Block{Language: fence, Row: i + 2}, len(row)-len(trimmed)
		case open != nil && fenced:
			blocks = append(blocks, *open)
			open = nil
		case open != nil:
			spaces := len(row) - len(trimmed)
			open.Text += row[min(spaces, indent):] + "\n"
		}
	}
	return blocks
}
