package openai

import "github.com/tidefill/tidefill/internal/batchfile"

// outputSize is the size of the output of a response.
type outputSize struct {
	items      int
	characters int // of all texts, without spaces and what is escaped with one letter
}

// sizeOfOutput reads a whole response. The last event is parsed once more for that; the others have
// no output, or a part of it.
func sizeOfOutput(response []byte) (size outputSize) {
	c := batchfile.NewCursor(response)
	for o := c.Object(); o.Next(); {
		if string(o.Key()) != "output" || c.Kind() != '[' {
			continue
		}
		for a := c.Array(); a.Next(); {
			size.items++
			if c.Kind() == '{' {
				size.characters += charactersOfItem(&c)
			}
		}
	}
	return size
}

// charactersOfItem counts the texts of the item at the cursor, or of a part of its content or
// summary.
func charactersOfItem(c *batchfile.Cursor) (characters int) {
	for o := c.Object(); o.Next(); {
		switch string(o.Key()) {
		case "content", "summary":
			if c.Kind() != '[' {
				continue
			}
			for a := c.Array(); a.Next(); {
				if c.Kind() == '{' {
					characters += charactersOfItem(c)
				}
			}
		case "text", "refusal", "arguments", "input":
			if c.Kind() == '"' {
				characters += countCharacters(c.Skip())
			}
		}
	}
	return characters
}

// countCharacters counts the characters of a JSON string as it is written. It leaves out spaces and
// escapes such as \n, since servers trim texts at their ends, quotes, and the second halves of
// characters that are escaped as two.
func countCharacters(s []byte) (characters int) {
	for i := 0; i < len(s); i++ {
		switch b := s[i]; {
		case b == '\\' && i+5 < len(s) && s[i+1] == 'u':
			if second := s[i+2]|0x20 == 'd' && s[i+3]|0x20 >= 'c'; !second {
				characters++
			}
			i += 5
		case b == '\\':
			i++
		case b != ' ' && b != '"' && b&0xC0 != 0x80: // not the rest of a character
			characters++
		}
	}
	return characters
}
