package emulator

import "strings"

// words are the vocabulary of generated text. Each is one token, printable and without characters
// that JSON escapes.
var words = strings.Fields(`
	tide ebb flow shore harbor reef sand shell wave foam current drift moon gull pier anchor
	sail mast rope keel hull deck oar tiller helm buoy beacon chart compass channel delta estuary
	the a of and to in under over beyond along between toward slowly gently again then
	rises falls turns carries returns leaves gathers settles waits opens calm bright deep wide`)

// appendWords appends the tokens from up to to of the text that seed determines. The first token of
// a text has no space before it.
func appendWords(b []byte, seed uint64, from, to int) []byte {
	for i := from; i < to; i++ {
		if i > 0 {
			b = append(b, ' ')
		}
		b = append(b, words[mix(seed+uint64(i))%uint64(len(words))]...)
	}
	return b
}
