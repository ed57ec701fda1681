package answercheck

import (
	"encoding/json"
	"reflect"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// guard stands in place of a schema. It spends the steps that the schema takes on a value before
// the schema is applied, since the library applies it to the end.
type guard struct {
	schema *jsonschema.Schema
	// own is the steps that do not depend on the value.
	own    int
	budget *budget
}

// faultSteps is the number of further steps that a schema takes which does not hold: each is kept
// and described.
const faultSteps = 8

// Validate implements [jsonschema.SchemaExt].
func (g *guard) Validate(in *jsonschema.ValidatorContext, value any) {
	g.budget.spend(g.own + g.steps(value))
	if err := in.Validate(g.schema, value, nil); err != nil {
		g.budget.spend(g.own + faultSteps)
		in.AddErr(err)
	}
}

// steps returns the steps for a value without the schemas that apply to its members.
func (g *guard) steps(value any) int {
	switch value := value.(type) {
	case map[string]any:
		return len(value) / entriesPerStep
	case []any:
		n := len(value) / entriesPerStep
		switch {
		case !g.schema.UniqueItems:
		case len(value) <= maxPaired:
			n += len(value) * weight(value)
		default:
			n += weight(value)
		}
		return n
	case json.Number:
		n := weight(value)
		if g.schema.Enum != nil {
			n *= 1 + len(g.schema.Enum.Values)
		}
		return n
	}
	return weight(value)
}

const (
	// maxPaired limits the items that the library compares in pairs to find equal ones. It hashes
	// those of longer lists.
	maxPaired = 20

	bytesPerStep   = 256
	digitsPerStep  = 16
	entriesPerStep = 8
)

// weight returns the steps that it takes to compare or to hash a value.
func weight(value any) int {
	n := 1
	switch value := value.(type) {
	case map[string]any:
		for key, member := range value {
			n += len(key)/bytesPerStep + weight(member)
		}
	case []any:
		for _, element := range value {
			n += weight(element)
		}
	case string:
		n += len(value) / bytesPerStep
	case json.Number:
		e, _ := exponent(value)
		n += (len(value) + max(e, -e)) / digitsPerStep
	}
	return n
}

// guards makes the guards of the schemas of a document.
type guards struct {
	budget *budget
	of     map[*jsonschema.Schema]bool // that have one
}

// add gives a schema a guard, and those that are true or false within it.
func (g *guards) add(s *jsonschema.Schema) {
	if g.of[s] {
		return
	}
	g.of[s] = true
	inner := *s
	guard := &guard{&inner, ownSteps(&inner), g.budget}
	// The schema stays what references lead to, so it keeps its place and its names.
	all := reflect.ValueOf(s).Elem()
	for i := range all.NumField() {
		switch field := all.Type().Field(i); field.Name {
		case "DraftVersion", "Location", "RecursiveAnchor", "DynamicAnchor":
		default:
			if field.IsExported() {
				all.Field(i).SetZero()
			}
		}
	}
	s.Extensions = []jsonschema.SchemaExt{guard}
	g.addConstants(reflect.ValueOf(inner))
}

// addConstants gives the schemas a guard that are true or false and that a value holds, such as the
// field of a schema.
func (g *guards) addConstants(in reflect.Value) {
	if s, is := in.Interface().(*jsonschema.Schema); is {
		if s != nil && s.Bool != nil {
			g.add(s)
		}
		return
	}
	switch in.Kind() {
	case reflect.Interface:
		if !in.IsNil() {
			g.addConstants(in.Elem())
		}
	case reflect.Slice:
		for i := range in.Len() {
			g.addConstants(in.Index(i))
		}
	case reflect.Map:
		for _, key := range in.MapKeys() {
			g.addConstants(in.MapIndex(key))
		}
	case reflect.Struct:
		for i := range in.NumField() {
			if in.Type().Field(i).IsExported() {
				g.addConstants(in.Field(i))
			}
		}
	}
}

func ownSteps(s *jsonschema.Schema) int {
	n := 1
	if s.Const != nil {
		n += weight(*s.Const)
	}
	if s.Enum != nil {
		n += weight(s.Enum.Values)
	}
	names := len(s.Required) + len(s.Dependencies) + len(s.DependentSchemas)
	for _, required := range s.DependentRequired {
		names += 1 + len(required)
	}
	for _, dependency := range s.Dependencies {
		if required, is := dependency.([]string); is {
			names += len(required)
		}
	}
	return n + names/entriesPerStep
}
