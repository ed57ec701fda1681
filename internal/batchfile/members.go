package batchfile

import "iter"

// Members yields the members of a JSON object in order: keys decoded, values as they are written.
// It ends at the first fault; IsObject reports whether there is one.
func Members(object []byte) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		i := skipSpace(object, 0)
		if i == len(object) || object[i] != '{' {
			return
		}
		for m := membersAt(object, i); ; {
			key, more, err := m.next()
			if err != nil || !more {
				return
			}
			start := m.at
			if m.at, err = skipValue(object, start, answerDepth); err != nil {
				return
			}
			if !yield(string(textOf(key.of(object), new([32]byte)[:0])), object[start:m.at]) {
				return
			}
		}
	}
}

// Elements yields the elements of a JSON array as they are written. It ends at the first fault.
func Elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		i := skipSpace(array, 0)
		if i == len(array) || array[i] != '[' {
			return
		}
		for i = skipSpace(array, i+1); i < len(array) && array[i] != ']'; {
			end, err := skipValue(array, i, answerDepth)
			if err != nil || !yield(array[i:end]) {
				return
			}
			i = skipSpace(array, end)
			if i == len(array) || array[i] != ',' {
				return
			}
			i = skipSpace(array, i+1)
		}
	}
}
