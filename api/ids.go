package api

import "crypto/rand"

// The prefixes of ids, as OpenAI's clients expect them.
const (
	filePrefix    = "file-"
	batchPrefix   = "batch_"
	uploadPrefix  = "upload_"
	partPrefix    = "part_"
	requestPrefix = "req_"
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// newID returns the prefix and 24 random letters and digits, 142 bits.
func newID(prefix string) string {
	const length = 24
	id := make([]byte, 0, len(prefix)+length)
	id = append(id, prefix...)
	var random [2 * length]byte
	for {
		rand.Read(random[:])
		for _, b := range random {
			if b >= 4*62 { // would make low digits more likely
				continue
			}
			if id = append(id, base62[b%62]); len(id) == cap(id) {
				return string(id)
			}
		}
	}
}
