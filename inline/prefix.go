package inline

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

const (
	// prefixBlock is the number of bytes of a prompt between two hashes. Engines cache prompts in
	// blocks of some 16 tokens; shorter ones here would only make more hashes.
	prefixBlock = 1 << 10
	// maxPrefixes limits the hashes of a request. What 64 KiB of two prompts have in common decides
	// where both go.
	maxPrefixes = 64
	// bytesPerToken is that of English text with the vocabularies of current models.
	bytesPerToken = 4
	// imageTokens is what a picture costs with current models, which scale it to their own size.
	imageTokens = 576
)

// prompt returns the part of a prompt that is held.
func (b *body) prompt() []byte {
	at := b.scan.promptAt
	if at.from == 0 || at.from >= len(b.held) {
		return nil
	}
	if at.to == 0 {
		at.to = len(b.held)
	}
	return b.held[at.from:at.to]
}

// prefixes returns the hashes of the beginnings of a prompt, in blocks, the shortest first. Each
// includes all blocks before it, and the tenant: prompts of two tenants have no common beginning.
func prefixes(tenant string, prompt []byte) []uint64 {
	n := min(len(prompt)/prefixBlock, maxPrefixes)
	if n == 0 {
		return nil
	}
	hashes := make([]uint64, n)
	h := hash(seed, []byte(tenant))
	for i := range hashes {
		h = hash(h, prompt[i*prefixBlock:(i+1)*prefixBlock])
		hashes[i] = h
	}
	return hashes
}

const (
	// seed and multiplier are fractional digits of pi and of the golden ratio. The multiplier is
	// odd.
	seed       = 0x243f6a8885a308d3
	multiplier = 0x9e3779b97f4a7c15
)

// hash continues a hash with more bytes. It is the same in all processes. It is no defence against
// collisions: who makes one shares a runner with himself.
func hash(h uint64, b []byte) uint64 {
	h ^= uint64(len(b))
	for ; len(b) >= 8; b = b[8:] {
		h = mix(h ^ binary.LittleEndian.Uint64(b))
	}
	var last [8]byte
	copy(last[:], b)
	return mix(h ^ binary.LittleEndian.Uint64(last[:]))
}

func mix(x uint64) uint64 {
	high, low := bits.Mul64(x^multiplier, multiplier)
	return high ^ low
}

// promptTokens estimates the tokens of a prompt: its text by its bytes, and its images, which are
// no text although the body has them as data: URLs.
func (b *body) promptTokens() int {
	length := max(b.length, int64(len(b.held)))
	images := 0
	for rest := b.held; ; {
		i := bytes.Index(rest, []byte(";base64,"))
		if i < 0 {
			break
		}
		images++
		rest = rest[i:]
		end := bytes.IndexByte(rest, '"')
		if end < 0 { // the rest of the body is mostly this image
			length -= max(0, int64(len(rest))+length-int64(len(b.held)))
			break
		}
		length -= int64(end)
		rest = rest[end:]
	}
	return int(length/bytesPerToken) + images*imageTokens
}
