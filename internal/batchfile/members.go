package batchfile

import "iter"

// Members yields the members of a JSON object in order: keys decoded, values as they are written.
// It ends at the first fault; IsObject reports whether there is one.
func Members(object []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		c := NewCursor(object)
		for o := c.Object(); o.Next(); {
			key, value := string(o.Key()), c.Skip()
			if value == nil || !yield(key, value) {
				return
			}
		}
	}
}

// Elements yields the elements of a JSON array as they are written. It ends at the first fault.
func Elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		c := NewCursor(array)
		for a := c.Array(); a.Next(); {
			if value := c.Skip(); value == nil || !yield(value) {
				return
			}
		}
	}
}

// Kind returns the type of a JSON value for a message; "nothing" for an empty one.
func Kind(value []byte) string {
	i := skipSpace(value, 0)
	if i == len(value) {
		return "nothing"
	}
	switch value[i] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}
