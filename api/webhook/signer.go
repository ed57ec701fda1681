package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// signer signs deliveries by the scheme of Standard Webhooks, which OpenAI's SDKs verify. It never
// shows its keys.
type signer struct{ keys [][]byte }

const secretPrefix = "whsec_"

// newSigner returns a signer by the secrets in a text, separated by white space. Its error says
// nothing about them.
func newSigner(secrets string) (signer, error) {
	var s signer
	for _, secret := range strings.Fields(secrets) {
		encoded, ok := strings.CutPrefix(secret, secretPrefix)
		key, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil || len(key) < 24 || len(key) > 64 {
			return signer{}, errors.New("holds no secret: write whsec_ and 24 to 64 random bytes " +
				"in base64, such as whsec_$(openssl rand -base64 32)")
		}
		s.keys = append(s.keys, key)
	}
	if len(s.keys) == 0 {
		return signer{}, errors.New("is not set or empty")
	}
	return s, nil
}

// sign returns the value of the header webhook-signature.
func (s signer) sign(id string, timestamp int64, body []byte) string {
	signatures := make([]string, len(s.keys))
	for i, key := range s.keys {
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%d.%s", id, timestamp, body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(signatures, " ")
}

func (signer) String() string   { return "(hidden)" }
func (signer) GoString() string { return "(hidden)" }
