package send

import (
	"encoding/json"
	"fmt"

	"github.com/tidefill/tidefill/dispatch/work"
)

// priorityMember is the member of bodies that holds the engine's priority.
const priorityMember = "priority"

// takesPriority lists the endpoints whose requests have the member.
var takesPriority = map[string]bool{"/v1/chat/completions": true, "/v1/completions": true,
	"/v1/responses": true}

// withPriority returns the edits with a default for the engine's priority. added is false if the
// body gets none: the endpoint has no such member, or the batch's parameters set it.
func withPriority(e work.Edits, url string, value json.RawMessage) (_ work.Edits, added bool) {
	if value == nil || !takesPriority[url] || e.Names(priorityMember) {
		return e, false
	}
	return e.Defaulting(priorityMember, value), true
}

// cacheTag returns the tag that lines of a tenant share whose prompts begin alike; empty: the
// endpoint has no use for it. Tenants have different tags, so that the time of an answer shows
// nobody what others asked.
func cacheTag(tenant string, prefix uint64) string {
	if prefix == 0 {
		return ""
	}
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	hash := uint64(offset)
	for _, b := range []byte(tenant) {
		hash = (hash ^ uint64(b)) * prime
	}
	return fmt.Sprintf("tidefill-%016x", (hash^prefix)*prime)
}
