package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/internal/suggest"
)

// jsonObject reads the members of a JSON object by name and type, and reports unknown members,
// duplicates and wrong types with their path. null is the same as absent, since typed SDKs send it
// for fields that are not set.
//
// encoding/json does not replace it: its errors lack the indices of array elements and the paths of
// unknown members, and it accepts duplicate members. Values are decoded by encoding/json.
//
// The object keeps the first error of itself and of all objects inside it, and finish returns it.
// After an error the methods return zero values.
type jsonObject struct {
	path    string // with a final dot; empty for the outermost object
	members map[string]json.RawMessage
	known   []string
	fault   *error
}

// readObject reads the body of a request.
func readObject(body []byte) (*jsonObject, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, invalid("", "invalid_json", "The request has no body; send a JSON object.")
	}
	if !utf8.Valid(body) {
		return nil, invalid("", "invalid_json", "The body of the request is not UTF-8.")
	}
	members, err := decodeMembers(body)
	if err != nil {
		return nil, invalid("", "invalid_json",
			"We could not parse the JSON body of your request: %v.", err)
	}
	if members == nil {
		return nil, invalid("", "invalid_type",
			"The body of the request must be a JSON object, it is %s.", batchfile.Kind(body))
	}
	return &jsonObject{members: members, fault: new(error)}, nil
}

// maxMembers limits the members of one object, so that a small body does not become large in
// memory.
const maxMembers = 1_000

// decodeMembers returns the members of a JSON object, without copying their values, and nil for any
// other valid JSON. A duplicate member is an error; encoding/json would use the last one.
func decodeMembers(raw []byte) (map[string]json.RawMessage, error) {
	if !json.Valid(raw) {
		var invalid json.RawMessage
		return nil, json.Unmarshal(raw, &invalid) // the error has the position and the reason
	}
	if raw = bytes.TrimSpace(raw); raw[0] != '{' {
		return nil, nil
	}
	members := make(map[string]json.RawMessage)
	for name, value := range batchfile.Members(raw) {
		name = strings.ToValidUTF8(name, "\uFFFD") // an unpaired surrogate
		if _, twice := members[name]; twice {
			return nil, fmt.Errorf("the key %q occurs more than once", shortened(name))
		}
		if len(members) == maxMembers {
			return nil, fmt.Errorf("an object has more than %d members", maxMembers)
		}
		members[name] = value
	}
	return members, nil
}

// maxPath limits the path in an error message, which contains the user's names.
const maxPath = 256

// at returns the path of a member.
func (o *jsonObject) at(key string) string {
	path := o.path + key
	if len(path) > maxPath {
		return strings.ToValidUTF8(path[:maxPath], "") + "…"
	}
	return path
}

// fail records an error of a member, unless there is one already.
func (o *jsonObject) fail(key, code, format string, args ...any) {
	if *o.fault == nil {
		*o.fault = invalid(o.at(key), code, format, args...)
	}
}

func (o *jsonObject) missing(key string) {
	if *o.fault == nil {
		*o.fault = missing(o.at(key))
	}
}

func (o *jsonObject) wrongType(key, want string, raw json.RawMessage) {
	o.fail(key, "invalid_type", "Invalid type for '%s': expected %s, got %s.", o.at(key), want,
		batchfile.Kind(raw))
}

func (o *jsonObject) wrongValue(key, format string, args ...any) {
	o.fail(key, "invalid_value", "Invalid '%s': %s", o.at(key), fmt.Sprintf(format, args...))
}

// finish returns the first error. A member that was not read is an error.
func (o *jsonObject) finish() error {
	for _, name := range slices.Sorted(maps.Keys(o.members)) {
		if slices.Contains(o.known, name) {
			continue
		}
		hint := ""
		if meant := suggest.Nearest(name, o.known); meant != "" {
			hint = fmt.Sprintf(" Did you mean '%s'?", o.at(meant))
		}
		o.fail(name, "unknown_parameter", "Unknown parameter: '%s'.%s", o.at(name), hint)
	}
	return *o.fault
}

// value returns the JSON of a member; ok is false if it is absent or null.
func (o *jsonObject) value(key string) (raw json.RawMessage, ok bool) {
	o.known = append(o.known, key)
	raw, ok = o.members[key]
	return raw, ok && string(raw) != "null"
}

// has reports whether a member is present, without reading it.
func (o *jsonObject) has(key string) bool {
	raw, ok := o.members[key]
	return ok && string(raw) != "null"
}

func (o *jsonObject) text(key string) (text string, ok bool) {
	raw, ok := o.value(key)
	if !ok {
		return "", false
	}
	if err := json.Unmarshal(raw, &text); err != nil {
		o.wrongType(key, "a string", raw)
		return "", false
	}
	return text, true
}

// required returns a string that must be present and not empty.
func (o *jsonObject) required(key string) string {
	text, ok := o.text(key)
	if !ok || text == "" {
		o.missing(key)
	}
	return text
}

// choice returns a string that must be one of choices; the first of them if absent.
func (o *jsonObject) choice(key string, choices ...string) string {
	text, ok := o.text(key)
	if !ok {
		return choices[0]
	}
	if !slices.Contains(choices, text) {
		o.wrongValue(key, "%s is not one of the supported values '%s'.", quoted(text),
			strings.Join(choices, "', '"))
	}
	return text
}

// boolean returns true or false; false if absent.
func (o *jsonObject) boolean(key string) bool {
	raw, ok := o.value(key)
	switch {
	case !ok || string(raw) == "false":
		return false
	case string(raw) != "true":
		o.wrongType(key, "a boolean", raw)
		return false
	}
	return true
}

// integer returns an integer from least to most; the value absent if there is none.
func (o *jsonObject) integer(key string, least, most, absent int64) int64 {
	raw, ok := o.value(key)
	if !ok {
		return absent
	}
	return o.integerOf(key, raw, least, most)
}

func (o *jsonObject) integerOf(key string, raw json.RawMessage, least, most int64) int64 {
	if !isNumber(raw) {
		o.wrongType(key, "an integer", raw)
		return 0
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if errors.Is(err, strconv.ErrSyntax) {
		o.fail(key, "invalid_type", "Invalid type for '%s': expected an integer, got %s.",
			o.at(key), shortened(raw))
		return 0
	}
	if err != nil || n < least || n > most {
		o.wrongValue(key, "expected an integer from %d to %d, got %s.", least, most, shortened(raw))
		return 0
	}
	return n
}

// ratio returns a number from 0 to 1; if positive is set, 0 is out of range.
func (o *jsonObject) ratio(key string, positive bool, absent float64) float64 {
	raw, ok := o.value(key)
	if !ok {
		return absent
	}
	if !isNumber(raw) {
		o.wrongType(key, "a number", raw)
		return 0
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.IsNaN(n) || n < 0 || n > 1 || positive && n == 0 {
		least := "at least 0"
		if positive {
			least = "above 0"
		}
		o.wrongValue(key, "expected a number %s and at most 1, got %s.", least, shortened(raw))
		return 0
	}
	return n
}

// list returns the elements of an array with 1 to most elements; ok is false if it is absent or
// wrong.
func (o *jsonObject) list(key string, most int) (elements []json.RawMessage, ok bool) {
	raw, ok := o.value(key)
	if !ok {
		return nil, false
	}
	if raw[0] != '[' {
		o.wrongType(key, "an array", raw)
		return nil, false
	}
	n := 0
	for element := range batchfile.Elements(raw) {
		if n++; n <= most {
			elements = append(elements, element)
		}
	}
	if n == 0 || n > most {
		o.wrongValue(key, "expected 1 to %d elements, got %d.", most, n)
		return nil, false
	}
	return elements, true
}

// object returns the object in a member; ok is false if it is absent or wrong.
func (o *jsonObject) object(key string) (inside *jsonObject, ok bool) {
	raw, ok := o.value(key)
	if !ok {
		return nil, false
	}
	return o.objectOf(key, raw)
}

func (o *jsonObject) objectOf(key string, raw json.RawMessage) (inside *jsonObject, ok bool) {
	members, err := decodeMembers(raw)
	if err != nil {
		o.wrongValue(key, "%v.", err)
		return nil, false
	}
	if members == nil {
		o.wrongType(key, "an object", raw)
		return nil, false
	}
	return &jsonObject{path: o.path + key + ".", members: members, fault: o.fault}, true
}

// keys returns the names of all members, sorted, for objects with names of the user's choice.
func (o *jsonObject) keys() []string {
	o.known = slices.Sorted(maps.Keys(o.members))
	return o.known
}

func isNumber(raw json.RawMessage) bool {
	return len(raw) > 0 && (raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9')
}

// shortened returns a value of the user for a message, cut after 64 bytes.
func shortened[T ~string | ~[]byte](value T) string {
	const most = 64
	text := string(value)
	if len(text) <= most {
		return text
	}
	cut := most
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

func quoted(text string) string { return "'" + shortened(text) + "'" }
