package inline

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
)

// saltedURLs are the URLs whose requests have the member cache_salt in vLLM.
var saltedURLs = []string{"/v1/chat/completions", "/v1/completions", "/v1/responses"}

// salt is the beginning of the cache_salt of all requests of a tenant. Prompts of another tenant
// have another one, so nobody can learn from times of answers what prompts others send.
type salt struct{ value string }

// saltOf returns the salt of a tenant. It needs no secret: users can't send one that does not begin
// with their own.
func saltOf(tenant string) *salt {
	sum := sha256.Sum256([]byte("tidefill cache salt of " + tenant))
	return &salt{hex.EncodeToString(sum[:16])}
}

// edit returns the change of a body that was read to its end.
func (s *salt) edit(of *scan) edit {
	switch {
	case of.saltAt.from == 0:
		return edit{span{of.end, of.end}, s.member()}
	case of.saltIsText:
		inner := of.saltAt.from + 1
		return edit{span{inner, inner}, s.prefix()}
	}
	return edit{of.saltAt, []byte(`"` + s.value + `"`)}
}

func (s *salt) prefix() []byte { return []byte(s.value + ".") }

// member returns the salt as the last member of a body. Another one precedes it: the model.
func (s *salt) member() []byte { return []byte(`,"cache_salt":"` + s.value + `"`) }

var errNullSalt = errors.New("cache_salt is null; leave it out")

// apply changes a piece of a body that passes. base is its position, and of has read it.
func (s *salt) apply(piece []byte, base int, of *scan) ([]byte, error) {
	if begin := of.saltAt.from; begin >= base && begin < base+len(piece) {
		if !of.saltIsText {
			return nil, errNullSalt
		}
		return slices.Concat(piece[:begin+1-base], s.prefix(), piece[begin+1-base:]), nil
	}
	if of.saltAt.from == 0 && of.end >= base && of.end < base+len(piece) && of.end > 0 {
		return slices.Concat(piece[:of.end-base], s.member(), piece[of.end-base:]), nil
	}
	return piece, nil
}
