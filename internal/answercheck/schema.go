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
type schema struct {
	compiled *jsonschema.Schema
	longest  int // list in it, such as an enumeration
	budget   *budget
}

const (
	// maxDepth limits the levels of a schema and of a text.
	maxDepth = 200
	// maxExponent limits those of numbers: the validation computes with all of their digits.
	maxExponent = 400
)

const (
	schemaURL = "tidefill:///json_schema"
	steps     = "tidefill:///steps" // vocabulary that counts
)

var english = message.NewPrinter(language.English)

func compileSchema(text []byte, b *budget) (*schema, error) {
	if len(text) > MaxSchema {
		return nil, fmt.Errorf("the schema has %d bytes; the limit is %d", len(text), MaxSchema)
	}
	document, shape, err := decode(string(text))
	if err != nil {
		return nil, err
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
	c.RegisterVocabulary(&jsonschema.Vocabulary{URL: steps, Compile: func(
		*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) {
		return step{b}, nil
	}})
	c.AssertVocabs()
	if err := c.AddResource(schemaURL, document); err != nil {
		return nil, err
	}
	s := &schema{longest: shape.longest, budget: b}
	err = within(func() (err error) {
		s.compiled, err = c.Compile(schemaURL)
		return err
	})
	return s, plain(err)
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
	value, shape, err := decode(text)
	if err != nil {
		return err
	}
	s.budget.comparisons += shape.values * (1 + s.longest)
	if s.budget.comparisons > maxComparisons {
		return errTooCostly
	}
	return plain(within(func() error { return s.compiled.Validate(value) }))
}

// step counts the schemas that are applied.
type step struct{ budget *budget }

// Validate implements [jsonschema.SchemaExt].
func (s step) Validate(*jsonschema.ValidatorContext, any) { s.budget.spend(1) }

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

// shape says what a value costs.
type shape struct {
	values  int // in it, at any level
	longest int // list
}

// decode decodes a text that is one JSON value. Its numbers are [json.Number].
func decode(text string) (value any, of shape, err error) {
	if err := shallow(text); err != nil {
		return nil, of, err
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return nil, of, notJSON(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, of, errors.New("the text is not JSON; more follows the value")
	}
	return value, of, of.measure(value)
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

func (s *shape) measure(value any) error {
	s.values++
	switch value := value.(type) {
	case map[string]any:
		for _, member := range value {
			if err := s.measure(member); err != nil {
				return err
			}
		}
	case []any:
		s.longest = max(s.longest, len(value))
		for _, element := range value {
			if err := s.measure(element); err != nil {
				return err
			}
		}
	case json.Number:
		_, exponent, _ := strings.Cut(strings.ToLower(value.String()), "e")
		if n, err := strconv.Atoi(cmp.Or(exponent, "0")); err != nil || n > maxExponent ||
			n < -maxExponent {
			return fmt.Errorf("the number %s is out of range", cut(value.String(), 64))
		}
	}
	return nil
}
