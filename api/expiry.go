package api

import "encoding/json"

// formExpiry returns the fields expires_after[anchor] and expires_after[seconds] of a form as the
// JSON object that other requests have.
func formExpiry(anchor, seconds string) json.RawMessage {
	members := map[string]json.RawMessage{}
	if anchor != "" {
		members["anchor"] = jsonText(anchor)
	}
	if raw := json.RawMessage(seconds); isNumber(raw) && json.Valid(raw) {
		members["seconds"] = raw
	} else if seconds != "" {
		members["seconds"] = jsonText(seconds)
	}
	raw, err := json.Marshal(members)
	if err != nil {
		panic(err) // cannot fail: all members are valid JSON
	}
	return raw
}

func jsonText(text string) json.RawMessage {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err) // cannot fail for a string
	}
	return raw
}
