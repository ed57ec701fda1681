package strictyaml_test

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/internal/strictyaml"
)

type sample struct {
	Name  string          `yaml:"name"`
	Count int             `yaml:"count"`
	Share *float64        `yaml:"share"`
	On    *bool           `yaml:"on"`
	List  []string        `yaml:"list"`
	Table map[string]part `yaml:"table"`
	Part  part            `yaml:"part"`
	Rest  map[string]any  `yaml:",inline"`
}

type part struct {
	Min *float64 `yaml:"min"`
	Max *float64 `yaml:"max"`
}

// What is encoded is read as the same value, as YAML and over JSON, whatever its texts are.
func TestEncodedValuesAreReadAgain(t *testing.T) {
	off, whole, half := false, 2.0, 0.5
	for _, v := range []sample{
		{},
		{Name: "true", Count: 7, Share: &whole, On: &off, List: []string{"1", "", "null", "~"}},
		{Name: "a\nb\u2028\x7f\U0001F600: #\t\u202e", List: []string{}, Table: map[string]part{}},
		{Table: map[string]part{"b": {Min: &half}, "a": {}}, Part: part{Max: &whole}},
		{Rest: map[string]any{"yes": "no", "0x10": "0x10", "n": 3, "f": 3.0, "big": 1e300,
			"none": nil, "off": true, "deep": map[string]any{"l": []any{1, "x", nil, 2.5}}}},
	} {
		for _, encode := range []func(any) *yaml.Node{strictyaml.Encode, strictyaml.EncodeSet} {
			text, err := yaml.Marshal(encode(v))
			if err != nil {
				t.Fatalf("%+v: %v", v, err)
			}
			documents, fault := strictyaml.Documents(text)
			if fault != nil || len(documents) != 1 {
				t.Fatalf("%v in\n%s", fault, text)
			}
			fromJSON, err := strictyaml.FromJSON(strictyaml.JSON(encode(v)))
			if err != nil {
				t.Fatal(err)
			}
			for from, n := range map[string]*yaml.Node{"YAML": documents[0], "JSON": fromJSON} {
				var got sample
				if faults := strictyaml.Decode(n, "", &got).Faults(); len(faults) > 0 {
					t.Errorf("%s: %v in\n%s", from, faults, text)
				}
				if !reflect.DeepEqual(got, v) {
					t.Errorf("%s: got %+v, want %+v, from\n%s", from, got, v, text)
				}
			}
		}
	}
}

func TestOnlySetFieldsAreEncoded(t *testing.T) {
	half := 0.5
	text, err := yaml.Marshal(strictyaml.EncodeSet(sample{Name: "x", Share: &half}))
	if want := "name: x\nshare: 0.5\n"; err != nil || string(text) != want {
		t.Errorf("got %q, %v; want %q", text, err, want)
	}
}

// JSON has no numbers that are infinite, or none; a page with one would be lost as a whole.
func TestJSONIsValid(t *testing.T) {
	got := strictyaml.JSON(strictyaml.Encode(sample{Rest: map[string]any{"nan": math.NaN(),
		"inf": math.Inf(-1), "bad": "\xff", "\xfe": 1}}))
	if !json.Valid(got) {
		t.Errorf("got %s", got)
	}
	for _, text := range []string{"", "[", `{"a":`, "{]", "nul"} {
		if _, err := strictyaml.FromJSON([]byte(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}
