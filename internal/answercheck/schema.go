package answercheck

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// schema is a compiled JSON schema.
type schema struct{ compiled *jsonschema.Schema }

const (
	// maxDepth limits the levels of a schema and of a text.
	maxDepth = 200
	// maxValues limits the values in a schema, and maxObjects those of them that may be schemas:
	// each takes 2 KB while the batch runs, and the time to compile grows with their square.
	maxValues  = 12_000
	maxObjects = 1000
	// maxExponent and maxDigits limit numbers: the validation computes with all of their digits.
	maxExponent = 400
	maxDigits   = 1000
)

const (
	schemaURL = "tidefill:///json_schema"
	listing   = "tidefill:///listing" // vocabulary that lists the schemas that are compiled
)

var english = message.NewPrinter(language.English)

func compileSchema(text []byte, b *budget) (*schema, error) {
	if len(text) > MaxSchema {
		return nil, fmt.Errorf("the schema has %d bytes; the limit is %d", len(text), MaxSchema)
	}
	document, err := decode(string(text))
	if err != nil {
		return nil, err
	}
	if weight(document) > maxValues || objects(document) > maxObjects {
		return nil, fmt.Errorf("the schema has over %d values, or over %d objects and booleans; "+
			"define what it repeats once, in $defs", maxValues, maxObjects)
	}
	if wrapped(document) {
		return nil, errors.New(`it is the object of a response_format; ` +
			`give the value of its member "schema"`)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(func(text string) (jsonschema.Regexp, error) {
		return compilePattern(text, b)
	})
	var compiled []*jsonschema.Schema
	c.RegisterVocabulary(&jsonschema.Vocabulary{URL: listing, Compile: func(
		in *jsonschema.CompilerContext, _ map[string]any) (jsonschema.SchemaExt, error) {
		compiled = append(compiled, in.Enqueue(nil))
		return nil, nil
	}})
	c.AssertVocabs()
	if err := c.AddResource(schemaURL, document); err != nil {
		return nil, err
	}
	s := &schema{}
	if s.compiled, err = c.Compile(schemaURL); err != nil {
		return nil, plain(err)
	}
	guards := guards{b, map[*jsonschema.Schema]bool{}}
	for _, of := range append(compiled, s.compiled) {
		guards.add(of)
	}
	return s, nil
}

// objects returns the number of objects and booleans in a value, each of which may be a schema.
func objects(value any) (n int) {
	switch value := value.(type) {
	case bool:
		n = 1
	case []any:
		for _, element := range value {
			n += objects(element)
		}
	case map[string]any:
		n = 1
		for _, member := range value {
			n += objects(member)
		}
	}
	return n
}

// wrapped reports whether a document is the member json_schema of a response_format, which as a
// schema would permit everything.
func wrapped(document any) bool {
	members, _ := document.(map[string]any)
	_, inside := members["schema"].(map[string]any)
	return inside && members["type"] == nil && members["properties"] == nil
}

// check returns why a text does not conform.
func (s *schema) check(text string) error {
	value, err := decode(text)
	if err != nil {
		return err
	}
	return plain(within(func() error { return s.compiled.Validate(value) }))
}

type noLoader struct{}

// Load implements [jsonschema.URLLoader].
func (noLoader) Load(string) (any, error) {
	return nil, errors.New("nothing is loaded from outside; copy it into $defs")
}

// shownFaults is the number of faults that are shown of a text.
const shownFaults = 3

// plain returns an error of the library in one row, without its URLs and in a fixed order.
func plain(err error) error {
	if in, is := errors.AsType[*jsonschema.SchemaValidationError](err); is {
		err = in.Err
	}
	invalid, is := errors.AsType[*jsonschema.ValidationError](err)
	if !is {
		if err == nil {
			return nil
		}
		return errors.New(strings.ReplaceAll(err.Error(), schemaURL, ""))
	}
	var leaves []string
	addLeaves(&leaves, invalid)
	slices.Sort(leaves)
	leaves = slices.Compact(leaves)
	more := ""
	if n := len(leaves) - shownFaults; n > 0 {
		leaves, more = leaves[:shownFaults], fmt.Sprintf("; and %d more", n)
	}
	return errors.New(strings.Join(leaves, "; ") + more)
}

func addLeaves(to *[]string, e *jsonschema.ValidationError) {
	for _, cause := range e.Causes {
		addLeaves(to, cause)
	}
	if len(e.Causes) > 0 {
		return
	}
	at := "the text"
	if len(e.InstanceLocation) > 0 {
		at = "/" + strings.Join(e.InstanceLocation, "/")
	}
	*to = append(*to, cut("at "+at+": "+describe(e.ErrorKind), maxFault/shownFaults))
}

// describe says what is wrong. Faults of many lines are counted by their texts, so these leave out
// the values.
func describe(fault jsonschema.ErrorKind) string {
	switch fault := fault.(type) {
	case *kind.Pattern:
		return "it does not match the pattern " + fault.Want
	case *kind.Format:
		if fault.Want == "regex" { // usually a fault of the schema
			return fault.Err.Error()
		}
		return "it is not a valid " + fault.Want
	}
	return fault.LocalizedString(english)
}

// decode decodes a text that is one JSON value. Its numbers are [json.Number].
func decode(text string) (value any, err error) {
	if err := shallow(text); err != nil {
		return nil, err
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return nil, notJSON(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the text is not JSON; more follows the value")
	}
	return value, checkNumbers(value)
}

func notJSON(err error) error {
	if at, is := errors.AsType[*json.SyntaxError](err); is {
		return fmt.Errorf("the text is not JSON; the fault is at byte %d", at.Offset)
	}
	if errors.Is(err, io.EOF) {
		return errors.New("the text is not JSON; it is empty")
	}
	return errors.New("the text is not JSON; it ends too early")
}

// shallow returns an error for a text that nests too deeply.
func shallow(text string) error {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return fmt.Errorf("it nests over %d levels deep", maxDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// checkNumbers returns an error for a number in a value that is beyond the limits.
func checkNumbers(value any) error {
	switch value := value.(type) {
	case map[string]any:
		for _, member := range value {
			if err := checkNumbers(member); err != nil {
				return err
			}
		}
	case []any:
		for _, element := range value {
			if err := checkNumbers(element); err != nil {
				return err
			}
		}
	case json.Number:
		n, err := exponent(value)
		if err != nil || n > maxExponent || n < -maxExponent || len(value) > maxDigits {
			return fmt.Errorf("the number %s is out of range", cut(value.String(), 64))
		}
	}
	return nil
}

func exponent(of json.Number) (int, error) {
	_, text, _ := strings.Cut(strings.ToLower(of.String()), "e")
	return strconv.Atoi(cmp.Or(text, "0"))
}
